// RUN: stan-opt -p structure-exits,split-branch-chains -t stan %s | filecheck %s

// A chain longer than a group goes on behind a flag, which says that no branch was taken yet.
// CHECK: if (rest
parameters {
  real x;
}
model {
  int k = 0;
  if (x > 45) {
    k = 1;
  } else if (x > 44) {
    k = 2;
  } else if (x > 43) {
    k = 3;
  } else if (x > 42) {
    k = 4;
  } else if (x > 41) {
    k = 5;
  } else if (x > 40) {
    k = 6;
  } else if (x > 39) {
    k = 7;
  } else if (x > 38) {
    k = 8;
  } else if (x > 37) {
    k = 9;
  } else if (x > 36) {
    k = 10;
  } else if (x > 35) {
    k = 11;
  } else if (x > 34) {
    k = 12;
  } else if (x > 33) {
    k = 13;
  } else if (x > 32) {
    k = 14;
  } else if (x > 31) {
    k = 15;
  } else if (x > 30) {
    k = 16;
  } else if (x > 29) {
    k = 17;
  } else if (x > 28) {
    k = 18;
  } else if (x > 27) {
    k = 19;
  } else if (x > 26) {
    k = 20;
  } else if (x > 25) {
    k = 21;
  } else if (x > 24) {
    k = 22;
  } else if (x > 23) {
    k = 23;
  } else if (x > 22) {
    k = 24;
  } else if (x > 21) {
    k = 25;
  } else if (x > 20) {
    k = 26;
  } else if (x > 19) {
    k = 27;
  } else if (x > 18) {
    k = 28;
  } else if (x > 17) {
    k = 29;
  } else if (x > 16) {
    k = 30;
  } else if (x > 15) {
    k = 31;
  } else if (x > 14) {
    k = 32;
  } else if (x > 13) {
    k = 33;
  } else if (x > 12) {
    k = 34;
  } else if (x > 11) {
    k = 35;
  } else if (x > 10) {
    k = 36;
  } else if (x > 9) {
    k = 37;
  } else if (x > 8) {
    k = 38;
  } else if (x > 7) {
    k = 39;
  } else if (x > 6) {
    k = 40;
  } else if (x > 5) {
    k = 41;
  } else if (x > 4) {
    k = 42;
  } else if (x > 3) {
    k = 43;
  } else if (x > 2) {
    k = 44;
  } else if (x > 1) {
    k = 45;
  }
  target += k * x;
}
