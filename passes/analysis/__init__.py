"""Answers about a program that several passes ask for; nothing here changes one.

What ops do besides computing results, and to which memory (`effects_low`); what the iterations of a loop touch
(`accesses`); what a region uses from outside (`free_values`); what stands where (`nesting`, `bodies`); what is known at
compile time (`constants`). Imports dialects and tables of the library only. Begin with `effects_low.py`: its table says
for each op class what passes may do with it.
"""
