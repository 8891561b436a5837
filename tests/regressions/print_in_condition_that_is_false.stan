// Dead code: a loop that never runs was taken out with what its condition prints (levels 3 and 4).
// data: {}
// generates: "over 0\n"
functions {
  int over(int n) {
    print("over ", n);
    if (n > 5) return n - 1;
    return n + 1;
  }
}
generated quantities {
  int t = 0;
  while (t < 4 && 0 > over(0)) t += 1;
}
