"""Profiles: the recorder in C as Python sees it (`profiler`), reports and their forms, samples by line."""
