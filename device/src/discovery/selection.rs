//! Which devices a process sees: what `ZE_FLAT_DEVICE_HIERARCHY` and `ZE_AFFINITY_MASK` select (Level Zero programming
//! guide, "Device Hierarchy" and "Affinity Mask").
//!
//! Must never change the numbers of a device: they are the same in every process, whatever it sees.

use std::collections::BTreeMap;

use super::device::Numbers;
use crate::platform::settings::{Hierarchy, Settings};

/// The devices that a process sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The whole devices that the process sees in whole or in part, each with its visible sub-devices.
    pub wholes: BTreeMap<u32, Vec<u32>>,
    /// The devices that `zeDeviceGet` returns, in this order.
    pub listed: Vec<Numbers>,
    /// Entries of the mask that select nothing.
    pub unused: Vec<Numbers>,
}

impl Selection {
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let parts = || 0..settings.sub_devices;
        let all: BTreeMap<u32, Vec<u32>> = (0..settings.devices).map(|index| (index, parts().collect())).collect();
        let leaves = all.iter().flat_map(|(index, parts)| leaves_of(*index, parts)).collect::<Vec<_>>();
        let is_composite = settings.hierarchy == Hierarchy::Composite;
        // The numbers of what an entry of the mask selects.
        let named = |(first, second): Numbers| match (is_composite, second) {
            (true, None) => leaves.iter().filter(|(index, _)| *index == first).copied().collect(),
            (true, Some(number)) => {
                // A device without sub-devices is its only part.
                let of_part = |(index, part): &&Numbers| *index == first && part.unwrap_or(0) == number;
                leaves.iter().filter(of_part).copied().collect()
            }
            (false, None) => leaves.get(first as usize).copied().into_iter().collect::<Vec<_>>(),
            (false, Some(_)) => Vec::new(),
        };
        let (seen, unused) = if settings.affinity.is_empty() {
            (leaves.clone(), Vec::new())
        } else {
            let mut seen: Vec<_> = settings.affinity.iter().flat_map(|entry| named(*entry)).collect();
            seen.sort_unstable();
            seen.dedup();
            (seen, settings.affinity.iter().filter(|entry| named(**entry).is_empty()).copied().collect())
        };
        let mut wholes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, part) in &seen {
            wholes.entry(*index).or_default().extend(part);
        }
        let listed = if is_composite {
            // A single visible sub-device of several appears as a device.
            wholes.iter().map(|(index, parts)| (*index, parts.first().filter(|_| parts.len() == 1).copied())).collect()
        } else {
            seen
        };
        Self { wholes, listed, unused }
    }
}

/// The sub-devices of a device, or the device if it has none.
fn leaves_of(index: u32, parts: &[u32]) -> Vec<Numbers> {
    if parts.is_empty() { vec![(index, None)] } else { parts.iter().map(|part| (index, Some(*part))).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(hierarchy: &str, mask: &str, sub_devices: &str) -> Selection {
        let (settings, warnings) = Settings::read(|name| {
            let value = match name {
                "ZE_SOFT_DEVICES" => "2",
                "ZE_SOFT_SUB_DEVICES" => sub_devices,
                "ZE_FLAT_DEVICE_HIERARCHY" => hierarchy,
                "ZE_AFFINITY_MASK" => mask,
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert!(warnings.is_empty(), "{warnings:?}");
        Selection::from_settings(&settings)
    }

    /// The examples of the programming guide: two devices with four sub-devices each.
    #[test]
    fn a_mask_selects_devices_and_sub_devices() {
        let whole = |index| (index, None);
        let part = |index, number| (index, Some(number));
        for (mask, listed, parts) in [
            ("", vec![whole(0), whole(1)], vec![(0, vec![0, 1, 2, 3]), (1, vec![0, 1, 2, 3])]),
            ("0", vec![whole(0)], vec![(0, vec![0, 1, 2, 3])]),
            ("1,0", vec![whole(0), whole(1)], vec![(0, vec![0, 1, 2, 3]), (1, vec![0, 1, 2, 3])]),
            ("0.0", vec![part(0, 0)], vec![(0, vec![0])]),
            ("1.1,1.2", vec![whole(1)], vec![(1, vec![1, 2])]),
            ("0.2,1.3,1.0,0.3", vec![whole(0), whole(1)], vec![(0, vec![2, 3]), (1, vec![0, 3])]),
            ("0.1,1", vec![part(0, 1), whole(1)], vec![(0, vec![1]), (1, vec![0, 1, 2, 3])]),
        ] {
            let found = selected("COMPOSITE", mask, "4");
            assert_eq!((found.listed, found.unused), (listed, vec![]), "{mask}");
            assert_eq!(found.wholes, parts.into_iter().collect(), "{mask}");
        }
        for hierarchy in ["FLAT", "COMBINED"] {
            let found = selected(hierarchy, "", "4");
            assert_eq!(found.listed.len(), 8);
            let found = selected(hierarchy, "6,1", "4");
            assert_eq!(found.listed, [part(0, 1), part(1, 2)]);
            assert_eq!(found.wholes, BTreeMap::from([(0, vec![1]), (1, vec![2])]));
        }
    }

    #[test]
    fn devices_without_sub_devices_are_their_only_part() {
        for hierarchy in ["COMPOSITE", "FLAT", "COMBINED"] {
            assert_eq!(selected(hierarchy, "default", "0").listed, [(0, None), (1, None)]);
            assert_eq!(selected(hierarchy, "1", "0").listed, [(1, None)]);
        }
        assert_eq!(selected("COMPOSITE", "1.0", "0").listed, [(1, None)]);
    }

    #[test]
    fn what_is_not_there_selects_nothing() {
        let found = selected("COMPOSITE", "2,0.4,1.1", "4");
        assert_eq!((found.listed, found.unused), (vec![(1, Some(1))], vec![(2, None), (0, Some(4))]));
        let found = selected("FLAT", "0.1,8", "4");
        assert_eq!((found.listed, found.unused), (vec![], vec![(0, Some(1)), (8, None)]));
    }
}
