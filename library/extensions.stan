/* Functions that Stan does not have; any program can call them. What is written here is all that it takes: signatures,
 * forms for containers, `~` and derivatives are made of the definitions (CONTRIBUTING.md, "Adding a function"). A scalar
 * primitive is declared: `real name(real x);`. */
