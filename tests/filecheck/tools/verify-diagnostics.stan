// RUN: stan-opt %s --split-input-file --verify-diagnostics

// The message is on the line of the comment.
parameters { real x; }
model {
  y ~ normal(x, 1);  // expected-error {{'y' is not declared}}
}

// -----
// Two messages of one program; places relative to the comment.
model {
  // expected-error @+1 {{'a'}}
  a = 1;
  b = 2;
  // expected-error @above {{'b'}}
}

// -----
// A program without a message.
parameters { real x; }
model { x ~ normal(0, 1); }
