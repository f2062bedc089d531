//! Every scheduler by name. A new one adds one line here.

use crate::params::{Check, Context, Field, Params, Values};
use crate::queue;
use crate::queue::Scheduler;

/// A scheduler as a user finds it. Its parameters are set for each class.
#[derive(Clone, Copy)]
pub struct SchedulerEntry {
    /// The word in a file.
    pub name: &'static str,
    /// Its law in a sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The operator's settings of each class.
    pub fields: &'static [Field],
    /// Whether one class's values make sense in this place.
    pub check: Check,
    /// The scheduler of classes with these values, in order; `check` has passed for each.
    pub build: fn(&[Values], &Context) -> AnyScheduler,
}

/// One table, one line per scheduler.
macro_rules! schedulers {
    ($( $name:literal = $variant:ident($t:ty, $params:ty), $source:literal, $summary:literal; )*) => {
        pub(super) const SCHEDULERS: &[SchedulerEntry] = &[ $( SchedulerEntry {
            name: $name,
            summary: $summary,
            source: $source,
            fields: <$params as Params>::FIELDS,
            check: &|v, c| <$params as Params>::from_values(v).check(c),
            build: |classes, c| {
                let classes: Vec<$params> = classes.iter().map(<$params as Params>::from_values).collect();
                AnyScheduler::$variant(<$params>::build(&classes, c))
            },
        }, )* ];

        /// Any scheduler.
        pub enum AnyScheduler {
            $( #[doc = concat!("`", $name, "`: ", $summary)] $variant($t), )*
            /// A user's own.
            Custom(Box<dyn Scheduler>),
        }

        impl std::fmt::Debug for AnyScheduler {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $( AnyScheduler::$variant(_) => stringify!($variant), )*
                    AnyScheduler::Custom(_) => "Custom",
                })
            }
        }

        #[cfg(test)]
        impl AnyScheduler {
            /// Every scheduler's parameters can be read back as written.
            pub(super) fn parameters_round_trip() {
                $( super::tests::round_trips::<$params>(); )*
            }
        }

        impl Scheduler for AnyScheduler {
            fn next(&mut self, heads: &[Option<u32>]) -> Option<usize> {
                match self {
                    $( AnyScheduler::$variant(s) => s.next(heads), )*
                    AnyScheduler::Custom(s) => s.next(heads),
                }
            }
            fn sent(&mut self, class: usize, bytes: u32) {
                match self {
                    $( AnyScheduler::$variant(s) => s.sent(class, bytes), )*
                    AnyScheduler::Custom(s) => s.sent(class, bytes),
                }
            }
            fn emptied(&mut self, class: usize) {
                match self {
                    $( AnyScheduler::$variant(s) => s.emptied(class), )*
                    AnyScheduler::Custom(s) => s.emptied(class),
                }
            }
        }
    };
}

schedulers! {
    "priority" = Priority(queue::priority::Priority, queue::priority::Params),
        "RFC 3246 §2 (expedited forwarding); RFC 2475",
        "The first class in the list that has something to send sends.";
    "drr" = Drr(queue::drr::Drr, queue::drr::Params),
        "Shreedhar and Varghese 1996",
        "Classes take turns of a quantum of bytes each; what is left of one is kept for the next.";
}
