// A call whose value is not used was removed with its print: the function is overloaded.
// data: {"n": 3}
// generates: "hi\n"
functions {
  int f(int x) {
    print("hi");
    return x;
  }
  real f(real x) {
    return x;
  }
}
data {
  int n;
}
generated quantities {
  {
    int y = f(n);
  }
}
