"""The command lines `ulam` and `stan-opt`: arguments, printing, exit statuses, and nothing else.

May import everything; nothing imports it. What is heavy is imported by the command that needs it, so that `--help` is
quick. Begin with `options.py`, which has the tables of commands and options, `ulam.py`, and `stan_opt.py`.
"""
