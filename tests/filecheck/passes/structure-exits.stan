// RUN: stan-opt --split-input-file -p structure-exits -t stan %s | filecheck %s

// Early returns: what follows goes into the other branch.
functions {
  real f(real x) {
    if (x < 0) {
      return 0;
    }
    real y = 2 * x;
    if (y > 1) {
      return y;
    } else {
      y = 3;
    }
    return y + 1;
  }
}
// CHECK:       real f(real x) {
// CHECK-NEXT:    real result_;
// CHECK-NEXT:    if (x < 0) {
// CHECK-NEXT:      result_ = 0;
// CHECK-NEXT:    } else {
// CHECK-NEXT:      real y = 2 * x;
// CHECK-NEXT:      if (y > 1) {
// CHECK-NEXT:        result_ = y;
// CHECK-NEXT:      } else {
// CHECK-NEXT:        y = 3;
// CHECK-NEXT:        result_ = y + 1;
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    return result_;
// CHECK-NEXT:  }

// -----
// A single return at the end is left as it is.
functions {
  real f(real x) {
    real y = x;
    return y;
  }
}
// CHECK:       real f(real x) {
// CHECK-NEXT:    real y = x;
// CHECK-NEXT:    return y;
// CHECK-NEXT:  }

// -----
// A function without result.
functions {
  void f(real x) {
    if (x < 0)
      return;
    print(x);
  }
}
// CHECK:       void f(real x) {
// CHECK-NEXT:    if (x < 0) {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      print(x);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// A `for` with break becomes a `while`; the flag falls before the loop variable is advanced.
model {
  for (i in 1:9) {
    if (i == 3)
      break;
    print(i);
  }
}
// CHECK:       model {
// CHECK-NEXT:    int [[UPPER:.*]] = 9;
// CHECK-NEXT:    int i = 1;
// CHECK-NEXT:    int running_ = 1 <= [[UPPER]];
// CHECK-NEXT:    while (running_) {
// CHECK-NEXT:      int [[I:i_2]] = i;
// CHECK-NEXT:      if ([[I]] == 3) {
// CHECK-NEXT:        running_ = 0;
// CHECK-NEXT:      } else {
// CHECK-NEXT:        print([[I]]);
// CHECK-NEXT:        running_ = [[I]] < [[UPPER]];
// CHECK-NEXT:        i = [[I]] + 1;
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// `continue` alone leaves the `for` a `for`, and needs no flag where one branch always continues.
model {
  for (i in 1:9) {
    if (i == 3)
      continue;
    print(i);
  }
}
// CHECK:       for (i in 1:9) {
// CHECK-NEXT:    if (i == 3) {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      print(i);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// Where a branch continues only sometimes, a flag tells whether the rest of the iteration runs.
model {
  for (i in 1:9) {
    if (i > 3) {
      if (i > 5)
        continue;
      print("small");
    }
    print(i);
  }
}
// CHECK:       for (i in 1:9) {
// CHECK-NEXT:    int proceed_ = 1;
// CHECK-NEXT:    if (i > 3) {
// CHECK-NEXT:      if (i > 5) {
// CHECK-NEXT:        proceed_ = 0;
// CHECK-NEXT:      } else {
// CHECK-NEXT:        print("small");
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    if (proceed_) {
// CHECK-NEXT:      print(i);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// The condition of a `while` is not evaluated once the loop was left.
model {
  int k = 0;
  while (k < 9) {
    k += 1;
    if (k == 3)
      break;
  }
}
// CHECK:       int running_ = 1;
// CHECK-NEXT:  while (running_ && k < 9) {
// CHECK-NEXT:    k = k + 1;
// CHECK-NEXT:    if (k == 3) {
// CHECK-NEXT:      running_ = 0;
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// A return from two loops clears the flags of both; what follows in the outer body is absorbed or guarded.
functions {
  int f(int n) {
    for (i in 1 : n) {
      for (j in 1 : n) {
        if (i * j > n)
          return j;
      }
      print(i);
    }
    return 0;
  }
}
// CHECK:       int f(int n) {
// CHECK:         while ([[OUTER:running__[0-9]+]]) {
// CHECK:           while ([[INNER:running__[0-9]+]]) {
// CHECK:             if ({{.*}} > n) {
// CHECK-NEXT:          [[INNER]] = 0;
// CHECK-NEXT:          [[OUTER]] = 0;
// CHECK-NEXT:          result_ = {{.*}};
// CHECK-NEXT:          running_ = 0;
// CHECK-NEXT:        } else {
// CHECK:           if ([[OUTER]]) {
// CHECK-NEXT:        print(
// CHECK:         if (running_) {
// CHECK-NEXT:      result_ = 0;
// CHECK:         return result_;

// -----
// For-each: by position; a matrix column by column.
functions {
  real f(matrix m) {
    for (x in m) {
      if (x > 0)
        return x;
    }
    return 0;
  }
}
// CHECK:       real f(matrix m) {
// CHECK:         vector[num_elements(to_vector(m))] [[V:.*]] = to_vector(m);
// CHECK-NEXT:    int [[SIZE:.*]] = size([[V]]);
// CHECK-NEXT:    int position_ = 1;
// CHECK-NEXT:    int running__2 = 1 <= [[SIZE]];
// CHECK-NEXT:    while (running__2) {
// CHECK-NEXT:      int [[P:.*]] = position_;
// CHECK-NEXT:      real [[X:.*]] = [[V]][[[P]]];
// CHECK-NEXT:      if ([[X]] > 0) {

// -----
// Break inside a profile.
model {
  for (i in 1:9) {
    profile("p") {
      if (i == 3)
        break;
    }
    print(i);
  }
}
// CHECK:       profile("p") {
// CHECK-NEXT:    if (i_2 == 3) {
// CHECK-NEXT:      running_ = 0;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  if (running_) {
// CHECK-NEXT:    print(i_2);

// -----
// What cannot be reached goes.
functions {
  int f(int n) {
    while (1) {
      if (n > 0) {
        return 1;
      } else {
        return 2;
      }
    }
    return 3;
  }
}
// CHECK:       while (running__2 && 1) {
// CHECK-NEXT:    if (n > 0) {
// CHECK-NEXT:      running__2 = 0;
// CHECK-NEXT:      result_ = 1;
// CHECK-NEXT:      running_ = 0;
// CHECK-NEXT:    } else {
// CHECK-NEXT:      running__2 = 0;
// CHECK-NEXT:      result_ = 2;
// CHECK-NEXT:      running_ = 0;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
