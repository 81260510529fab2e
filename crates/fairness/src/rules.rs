use crate::Refused;

/// How many units an owner may hold.
pub trait Rule<O> {
    /// Whether `owner` gets what it asks for.
    ///
    /// # Errors
    /// It does not, for this reason.
    fn check(&self, owner: &O, demand: Demand) -> Result<(), Refused>;
}

/// What an owner asks for, and what is held until then.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// The units that it asks for.
    pub units: u64,
    /// The units that it holds.
    pub own: u64,
    /// The units that all owners hold.
    pub total: u64,
}

/// How many units must remain free for each unit that an owner holds.
const FREE_PER_HELD: u64 = 3;

/// An owner may hold at most a third as many units as remain free of this many.
///
/// So one owner can take a quarter of them, the next one a quarter of the rest, and so on: ten owners that take all they
/// can leave 5 % for others. Whatever is free is enough for an owner that holds nothing, and a capacity of which nothing
/// is held for a demand of any size.
#[derive(Debug, Clone, Copy)]
pub struct Remainder(pub u64);

impl Remainder {
    /// How many more units an owner that holds `own` of `total` may have.
    pub fn room(self, own: u64, total: u64) -> u64 {
        let free = self.0.saturating_sub(total);
        // The largest n for which own + n <= (free - n) / FREE_PER_HELD.
        let room = free.saturating_sub(own.saturating_mul(FREE_PER_HELD)) / (FREE_PER_HELD + 1);
        if own == 0 {
            room.max(free.min(1))
        } else {
            room
        }
    }
}

impl<O> Rule<O> for Remainder {
    fn check(&self, _: &O, demand: Demand) -> Result<(), Refused> {
        let total = demand.total.saturating_add(demand.units);
        if total > self.0 && demand.total > 0 {
            return Err(Refused::Full);
        }
        let own = demand.own.saturating_add(demand.units);
        let free = self.0.saturating_sub(total);
        if demand.own > 0 && own.saturating_mul(FREE_PER_HELD) > free {
            return Err(Refused::ShareUsed);
        }
        Ok(())
    }
}

/// Each owner may hold this many units, whatever others hold.
#[derive(Debug, Clone, Copy)]
pub struct Each(pub u64);

impl<O> Rule<O> for Each {
    fn check(&self, _: &O, demand: Demand) -> Result<(), Refused> {
        if demand.own.saturating_add(demand.units) > self.0 {
            return Err(Refused::ShareUsed);
        }
        Ok(())
    }
}
