// Angle of the point (x, y), -pi to pi, as C's atan2 (ISO C11, F.10.1.4).
fn angle_of(y: f32, x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let is_steep = magnitude(y) > magnitude(x);
    var a = bitcast<f32>(min(magnitude(x), magnitude(y)));
    var b = bitcast<f32>(max(magnitude(x), magnitude(y)));
    if (magnitude(b) < 0x21800000u) { // 2^-60: far from subnormals
        a = times(a, 0x1p75f);
        b = times(b, 0x1p75f);
    }
    var angle = 0.0;
    if (is_infinite(b)) {
        angle = select(0.0, 0.785398163, is_infinite(a));
    } else if (magnitude(b) != 0u) {
        var t: f32; // a / b, up to tan(pi / 8), or less an eighth of a turn
        if (a > 0.414213562 * b) {
            t = (0.125 * a - 0.125 * b) / (0.125 * a + 0.125 * b);
            angle = 0.785398163;
        } else {
            t = quotient(a, b);
        }
        let z = t * t;
        let p = fma(z, fma(z, 0.0807020022, -0.138833266), 0.199783059);
        angle += fma(t * z, fma(z, p, -0.333329677), t);
    }
    if (is_steep) { angle = 1.57079633 - angle; }
    if (is_negative(x)) { angle = 3.14159265 - angle; }
    return select(angle, -angle, is_negative(y));
}
