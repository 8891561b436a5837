// Inlining: continue did not evaluate the inlined condition of the loop again.
// generates: "0\ntail\n1\n2\n"
functions {
  int f(int x) {
    if (x >= 2) return 0;
    return 1;
  }
}
generated quantities {
  int i = 0;
  while (f(i)) {
    print(i);
    i += 1;
    if (i == 2) continue;
    print("tail");
  }
  print(i);
}
