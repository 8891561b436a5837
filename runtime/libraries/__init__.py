"""Programs as libraries with C interfaces: for programs that open shared libraries, and know nothing of ulam."""
