// An index into a slice became an index into the whole: an error was lost.
// data: {"v": [1, 2, 3, 4, 5], "i": 3}
// fails: index 3 out of range; expecting index to be between 1 and 2
data {
  vector[5] v;
  int i;
}
generated quantities {
  real a = v[1:2][i];
}
