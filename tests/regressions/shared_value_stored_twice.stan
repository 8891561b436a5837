// Code motion stored an expression behind another user of a value that partial evaluation had shared.
// point: []
// value: 0
// prints: "beta 0.3125\n"
model {
  profile("delta") {
    if (0.25 * inv(0.8) < 1 * inv(0.8)) {
      if (0.25 * inv(0.8) < 1 * inv(0.8)) {
        print("beta ", 0.25 * inv(0.8));
      }
    }
  }
}
