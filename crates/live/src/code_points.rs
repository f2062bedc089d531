//! Which DSCP stands for which colour: RFC 2597's AF1x unless the operator says otherwise.

use inprofile_core::packet::Colour;

/// A DSCP: six bits (RFC 2474 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Best effort.
    pub const DEFAULT: Dscp = Dscp(0);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Dscp = Dscp(46);

    /// The code point of this number; `None` above 63.
    #[must_use]
    pub const fn new(value: u8) -> Option<Dscp> {
        if value < 64 { Some(Dscp(value)) } else { None }
    }

    /// The upper six bits of a TOS octet or traffic class.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Dscp {
        Dscp(octet >> 2)
    }

    /// AF`class``precedence`, `AF11` to `AF43` (RFC 2597 §6); `None` for others.
    #[must_use]
    pub const fn af(class: u8, precedence: u8) -> Option<Dscp> {
        if class >= 1 && class <= 4 && precedence >= 1 && precedence <= 3 {
            Some(Dscp(8 * class + 2 * precedence))
        } else {
            None
        }
    }

    /// Its number.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Reads `AF11`, `EF`, `CS1`, `BE` or a number from 0 to 63.
    #[must_use]
    pub fn parse(text: &str) -> Option<Dscp> {
        let upper = text.trim().to_ascii_uppercase();
        if let Some(digits) = upper.strip_prefix("AF") {
            let [class, precedence] = digits.as_bytes() else { return None };
            return Dscp::af(class.checked_sub(b'0')?, precedence.checked_sub(b'0')?);
        }
        if let Some(digit) = upper.strip_prefix("CS") {
            return digit.parse().ok().filter(|n: &u8| *n < 8).map(|n| Dscp(8 * n));
        }
        match upper.as_str() {
            "EF" => Some(Dscp::EF),
            "BE" | "DF" => Some(Dscp::DEFAULT),
            _ => upper.parse().ok().and_then(Dscp::new),
        }
    }
}

/// By the names that [`Dscp::parse`] reads.
impl std::fmt::Display for Dscp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (class, rest) = (self.0 / 8, self.0 % 8);
        match self.0 {
            46 => f.write_str("EF"),
            _ if rest == 0 => write!(f, "CS{class}"),
            _ if (1..=4).contains(&class) && rest % 2 == 0 => write!(f, "AF{class}{}", rest / 2),
            n => write!(f, "{n}"),
        }
    }
}

/// The code points of the three drop precedences of one class, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePoints([Dscp; 3]);

/// AF11, AF12, AF13.
impl Default for CodePoints {
    fn default() -> CodePoints {
        CodePoints([Dscp(10), Dscp(12), Dscp(14)])
    }
}

impl CodePoints {
    /// Green, yellow and red; `None` if two colours had the same.
    #[must_use]
    pub fn new(green: Dscp, yellow: Dscp, red: Dscp) -> Option<CodePoints> {
        (green != yellow && yellow != red && green != red).then_some(CodePoints([green, yellow, red]))
    }

    /// The code point of a colour.
    #[must_use]
    pub fn of(&self, colour: Colour) -> Dscp {
        self.0[colour as usize]
    }

    /// The colour of a code point; `None` if it is none of this class.
    #[must_use]
    pub fn colour(&self, dscp: Dscp) -> Option<Colour> {
        Colour::ALL.into_iter().find(|c| self.of(*c) == dscp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_af_code_points_are_rfc_2597s() {
        // RFC 2597 §6: the table of recommended code points, in binary.
        let table = [
            ["001010", "010010", "011010", "100010"],
            ["001100", "010100", "011100", "100100"],
            ["001110", "010110", "011110", "100110"],
        ];
        for (precedence, row) in (1..).zip(table) {
            for (class, bits) in (1..).zip(row) {
                let dscp = Dscp::af(class, precedence).unwrap();
                assert_eq!(dscp.value(), u8::from_str_radix(bits, 2).unwrap());
                assert_eq!(dscp.to_string(), format!("AF{class}{precedence}"));
            }
        }
        assert_eq!((Dscp::af(0, 1), Dscp::af(5, 1), Dscp::af(1, 4), Dscp::new(64)), (None, None, None, None));
    }

    #[test]
    fn every_code_point_reads_as_it_is_written() {
        for dscp in (0..64).filter_map(Dscp::new) {
            assert_eq!(Dscp::parse(&dscp.to_string()), Some(dscp), "{dscp}");
            assert_eq!(Dscp::parse(&dscp.value().to_string()), Some(dscp));
        }
        assert_eq!(Dscp::parse(" be "), Some(Dscp::DEFAULT));
        for wrong in ["", "AF", "AF1", "AF14", "AF111", "CS8", "64", "-1", "AF1x", "EFF"] {
            assert_eq!(Dscp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn colours_and_code_points_go_both_ways() {
        let c = CodePoints::default();
        assert_eq!(Colour::ALL.map(|x| c.of(x).to_string()), ["AF11", "AF12", "AF13"]);
        assert_eq!(Colour::ALL.map(|x| c.colour(c.of(x))), Colour::ALL.map(Some));
        assert_eq!(c.colour(Dscp::EF), None);
        assert_eq!(CodePoints::new(Dscp::EF, Dscp::EF, Dscp::DEFAULT), None);
    }
}
