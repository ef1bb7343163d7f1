//! Floats in JSON: the Grisu2 algorithm of F. Loitsch ("Printing Floating-Point Numbers Quickly and Accurately with
//! Integers"), because nlohmann's library uses it and it is not always the shortest: about one number in a thousand
//! gets a digit more than needed, and that digit is part of what `toJSON` gives.

/// A number `f * 2^e`.
#[derive(Clone, Copy)]
struct Scaled {
    f: u64,
    e: i32,
}

impl Scaled {
    fn normalized(self) -> Scaled {
        let shift = self.f.leading_zeros();
        Scaled { f: self.f << shift, e: self.e - shift as i32 }
    }

    /// The upper half of the product, ties up.
    fn times(self, other: Scaled) -> Scaled {
        let product = u128::from(self.f) * u128::from(other.f);
        // NIX: the rounding bit is added to a sum from which the lowest 32 bits have been dropped; adding half to the
        // whole product rounds the same way, since those bits alone never carry past it.
        Scaled { f: ((product + (1 << 63)) >> 64) as u64, e: self.e + other.e + 64 }
    }
}

/// Writes a float as `nlohmann::json::dump` does; what is not finite becomes `null`.
pub fn write_json(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value == 0.0 {
        out.extend_from_slice(b"0.0");
        return;
    }
    let mut digits = Digits { bytes: [0; 17], length: 0 };
    let exponent = shortest(value.abs(), &mut digits);
    layout(out, &digits.bytes[..digits.length], exponent);
}

/// Digits as generated; 17 are always enough.
struct Digits {
    bytes: [u8; 17],
    length: usize,
}

impl Digits {
    fn push(&mut self, digit: u64) {
        self.bytes[self.length] = b'0' + digit as u8;
        self.length += 1;
    }

    /// Lowers the last digit while that comes nearer to the value.
    fn round(&mut self, distance: u64, delta: u64, mut rest: u64, unit: u64) {
        while rest < distance
            && delta - rest >= unit
            && (rest + unit < distance || distance - rest > rest + unit - distance)
        {
            self.bytes[self.length - 1] -= 1;
            rest += unit;
        }
    }
}

/// Fills in digits such that `digits * 10^exponent` reads back as the value; gives the exponent.
fn shortest(value: f64, digits: &mut Digits) -> i32 {
    const HIDDEN: u64 = 1 << 52;
    let bits = value.to_bits();
    let (biased, fraction) = (bits >> 52, bits & (HIDDEN - 1));
    let number = match biased {
        0 => Scaled { f: fraction, e: -1074 },
        _ => Scaled { f: fraction + HIDDEN, e: biased as i32 - 1075 },
    };
    // Halfway to the neighbours. Below a power of two the lower neighbour is nearer.
    let upper = Scaled { f: 2 * number.f + 1, e: number.e - 1 }.normalized();
    let lower = match fraction == 0 && biased > 1 {
        true => Scaled { f: 4 * number.f - 1, e: number.e - 2 },
        false => Scaled { f: 2 * number.f - 1, e: number.e - 1 },
    };
    let lower = Scaled { f: lower.f << (lower.e - upper.e), e: upper.e };
    let (power, decimal) = power_for(upper.e);
    let value = number.normalized().times(power);
    let (lower, upper) = (lower.times(power).f + 1, upper.times(power).f - 1);
    generate(digits, lower, value, upper) - decimal
}

/// Digits of `upper` until the rest lies within the bounds; gives the power of ten of the last one.
fn generate(digits: &mut Digits, lower: u64, value: Scaled, upper: u64) -> i32 {
    let shift = -value.e as u32;
    let one = 1u64 << shift;
    let mut delta = upper - lower;
    let mut distance = upper - value.f;
    let mut whole = upper >> shift;
    let mut part = upper & (one - 1);
    let mut count = whole.checked_ilog10().unwrap_or(0) as i32 + 1;
    while count > 0 {
        let unit = 10u64.pow(count as u32 - 1);
        digits.push(whole / unit);
        whole %= unit;
        count -= 1;
        let rest = (whole << shift) + part;
        if rest <= delta {
            digits.round(distance, delta, rest, unit << shift);
            return count;
        }
    }
    loop {
        part *= 10;
        digits.push(part >> shift);
        part &= one - 1;
        count -= 1;
        delta *= 10;
        distance *= 10;
        if part <= delta {
            digits.round(distance, delta, part, one);
            return count;
        }
    }
}

/// A power of ten that brings a number with this binary exponent into digit range, and its decimal exponent.
fn power_for(exponent: i32) -> (Scaled, i32) {
    let wanted = -61 - exponent;
    // 78913 / 2^18 is log10(2), rounded towards zero by the division.
    let least = wanted * 78913 / (1 << 18) + i32::from(wanted > 0);
    let index = (least + 300 + 7) / 8;
    let decimal = index * 8 - 300;
    // 217706 / 2^16 is log2(10).
    let e = ((decimal * 217_706) >> 16) - 63;
    (Scaled { f: POWERS[index as usize], e }, decimal)
}

/// Places the point: plain from 1e-4 up to fifteen digits, otherwise with an exponent.
fn layout(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let length = digits.len() as i32;
    let point = length + exponent;
    if length <= point && point <= 15 {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', (point - length) as usize));
        out.extend_from_slice(b".0");
    } else if 0 < point && point <= 15 {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    } else if -4 < point && point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', -point as usize));
        out.extend_from_slice(digits);
    } else {
        out.push(digits[0]);
        if length > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let exponent = point - 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
}

/// 10^-300, 10^-292, … 10^324: the upper 64 bits, correctly rounded.
#[rustfmt::skip]
const POWERS: [u64; 79] = [
    0xab70fe17c79ac6ca, 0xff77b1fcbebcdc4f, 0xbe5691ef416bd60c, 0x8dd01fad907ffc3c, 0xd3515c2831559a83,
    0x9d71ac8fada6c9b5, 0xea9c227723ee8bcb, 0xaecc49914078536d, 0x823c12795db6ce57, 0xc21094364dfb5637,
    0x9096ea6f3848984f, 0xd77485cb25823ac7, 0xa086cfcd97bf97f4, 0xef340a98172aace5, 0xb23867fb2a35b28e,
    0x84c8d4dfd2c63f3b, 0xc5dd44271ad3cdba, 0x936b9fcebb25c996, 0xdbac6c247d62a584, 0xa3ab66580d5fdaf6,
    0xf3e2f893dec3f126, 0xb5b5ada8aaff80b8, 0x87625f056c7c4a8b, 0xc9bcff6034c13053, 0x964e858c91ba2655,
    0xdff9772470297ebd, 0xa6dfbd9fb8e5b88f, 0xf8a95fcf88747d94, 0xb94470938fa89bcf, 0x8a08f0f8bf0f156b,
    0xcdb02555653131b6, 0x993fe2c6d07b7fac, 0xe45c10c42a2b3b06, 0xaa242499697392d3, 0xfd87b5f28300ca0e,
    0xbce5086492111aeb, 0x8cbccc096f5088cc, 0xd1b71758e219652c, 0x9c40000000000000, 0xe8d4a51000000000,
    0xad78ebc5ac620000, 0x813f3978f8940984, 0xc097ce7bc90715b3, 0x8f7e32ce7bea5c70, 0xd5d238a4abe98068,
    0x9f4f2726179a2245, 0xed63a231d4c4fb27, 0xb0de65388cc8ada8, 0x83c7088e1aab65db, 0xc45d1df942711d9a,
    0x924d692ca61be758, 0xda01ee641a708dea, 0xa26da3999aef774a, 0xf209787bb47d6b85, 0xb454e4a179dd1877,
    0x865b86925b9bc5c2, 0xc83553c5c8965d3d, 0x952ab45cfa97a0b3, 0xde469fbd99a05fe3, 0xa59bc234db398c25,
    0xf6c69a72a3989f5c, 0xb7dcbf5354e9bece, 0x88fcf317f22241e2, 0xcc20ce9bd35c78a5, 0x98165af37b2153df,
    0xe2a0b5dc971f303a, 0xa8d9d1535ce3b396, 0xfb9b7cd9a4a7443c, 0xbb764c4ca7a44410, 0x8bab8eefb6409c1a,
    0xd01fef10a657842c, 0x9b10a4e5e9913129, 0xe7109bfba19c0c9d, 0xac2820d9623bf429, 0x80444b5e7aa7cf85,
    0xbf21e44003acdd2d, 0x8e679c2f5e44ff8f, 0xd433179d9c8cb841, 0x9e19db92b4e31ba9,
];
