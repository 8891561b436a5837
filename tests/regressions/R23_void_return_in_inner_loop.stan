// Inlining: a return inside of an inner loop only ended the loop, so "end" was printed.
// data: {"k": 1}
// generates: "1\n"
functions {
  void g(int n) {
    for (i in 1:3) {
      if (i > n) return;
      print(i);
    }
    print("end");
    if (n > 100) return;
    print("last");
  }
}
data {
  int k;
}
generated quantities {
  g(k);
}
