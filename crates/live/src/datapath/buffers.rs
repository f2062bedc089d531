//! Room for packets that wait: bounded, and taken only as it is needed.

/// A packet's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// Places for packets.
#[derive(Debug)]
pub struct Buffers {
    places: Vec<Vec<u8>>,
    free: Vec<Slot>,
    most: usize,
}

impl Buffers {
    /// Room for at most so many.
    #[must_use]
    pub fn new(most: usize) -> Buffers {
        Buffers { places: Vec::new(), free: Vec::new(), most: most.min(u32::MAX as usize) }
    }

    /// Another bound; what is kept above it stays until it is released.
    pub fn set_most(&mut self, most: usize) {
        self.most = most.min(u32::MAX as usize);
    }

    /// Keeps a copy; `None` if there is no room left.
    pub fn keep(&mut self, frame: &[u8]) -> Option<Slot> {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.places[slot.0 as usize];
            place.clear();
            place.extend_from_slice(frame);
            return Some(slot);
        }
        if self.places.len() >= self.most {
            return None;
        }
        self.places.push(frame.to_vec());
        Some(Slot(self.places.len() as u32 - 1))
    }

    /// What is kept there.
    pub fn get_mut(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.places[slot.0 as usize]
    }

    /// It is needed no longer.
    pub fn release(&mut self, slot: Slot) {
        debug_assert!(!self.free.contains(&slot), "a place given back twice");
        self.free.push(slot);
    }

    /// The bound.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many are kept.
    #[must_use]
    pub fn used(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_never_exceed_the_bound() {
        let mut b = Buffers::new(2);
        let (x, y) = (b.keep(b"one").unwrap(), b.keep(b"two!").unwrap());
        assert_eq!((b.keep(b"three"), b.used()), (None, 2));
        assert_eq!((b.get_mut(x).to_vec(), b.get_mut(y).to_vec()), (b"one".to_vec(), b"two!".to_vec()));
        b.release(x);
        let z = b.keep(b"four and more").unwrap();
        assert_eq!((z, b.get_mut(z).to_vec(), b.used()), (x, b"four and more".to_vec(), 2));
    }
}
