"""Many fits: of one program with many data sets, on threads, processes or other machines."""
