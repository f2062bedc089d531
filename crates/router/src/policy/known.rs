//! Whose the packets of a flow are, in four bytes: those of eight flows share a cache line with what finds them.

use super::owners::Owner;

/// Of the flow that has some number, or had it last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    customer: u16,
    is: u8,
}

/// Somebody's.
const HIS: u8 = 1;
/// See [`Owner::entitled`].
const ENTITLED: u8 = 2;
/// Looked up since the last reload.
const FRESH: u8 = 4;

impl Known {
    /// Just looked up.
    pub fn fresh(owner: Owner) -> Known {
        let is = u8::from(owner.customer.is_some()) * HIS + u8::from(owner.entitled) * ENTITLED + FRESH;
        Known { customer: owner.customer.unwrap_or_default(), is }
    }

    /// Whether it was looked up since the last reload.
    pub fn is_fresh(self) -> bool {
        self.is & FRESH != 0
    }

    /// Whose they are.
    pub fn owner(self) -> Owner {
        let customer = (self.is & HIS != 0).then_some(self.customer);
        Owner { customer, entitled: self.is & ENTITLED != 0 }
    }

    /// After a reload: his still who `stays`, under the number that he has now; to be looked up again.
    pub fn reloaded(self, stays: impl Fn(u16) -> Option<u16>) -> Known {
        let owner = self.owner();
        let known = Known::fresh(Owner { customer: owner.customer.and_then(stays), ..owner });
        Known { is: known.is & !FRESH, ..known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        assert_eq!(size_of::<Known>(), 4);
        for customer in [None, Some(0), Some(7), Some(u16::MAX)] {
            for entitled in [false, true] {
                let owner = Owner { customer, entitled };
                let known = Known::fresh(owner);
                assert_eq!((known.is_fresh(), known.owner()), (true, owner));
                let after = known.reloaded(|c| (c == 7).then_some(9));
                let customer = (customer == Some(7)).then_some(9);
                assert_eq!((after.is_fresh(), after.owner()), (false, Owner { customer, entitled }));
            }
        }
        assert_eq!((Known::default().is_fresh(), Known::default().owner()), (false, Owner::default()));
    }
}
