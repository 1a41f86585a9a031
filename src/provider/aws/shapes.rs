//! EC2's description of a type, as a shape.

use std::sync::Arc;

use aws_sdk_ec2::types::{
    GpuDeviceMemoryInfo, GpuInfo, InferenceAcceleratorInfo, InferenceDeviceMemoryInfo, InstanceType, InstanceTypeInfo,
    MemoryInfo, NetworkInfo, NeuronDeviceMemoryInfo, NeuronInfo, UsageClassType, VCpuInfo,
};

use super::ID;
use crate::catalogue::{accelerators, instance_types};
use crate::domain::{AcceleratorCount, Interconnect, Shape};

/// A type with accelerators, and how it can be bought there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Described {
    pub(super) shape: Arc<Shape>,
    pub(super) on_demand: bool,
    pub(super) spot: bool,
    pub(super) capacity_block: bool,
}

/// What a description turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    /// A machine with accelerators.
    Accelerated(Described),
    /// One without; it is not what gpudeck is for.
    Plain,
    /// One with something in it that cannot be read, and what.
    Unreadable(&'static str),
}

/// One kind of device in a machine.
struct Device<'a> {
    name: Option<&'a str>,
    /// How many; parts of one where a machine has a part.
    count: f64,
    /// Memory of a whole one.
    mib: Option<f64>,
}

/// What EC2 says of a type.
pub(super) fn read(info: &InstanceTypeInfo) -> Reading {
    let Some(kind) = info.instance_type().map(InstanceType::as_str).filter(|t| !t.is_empty()) else {
        return Reading::Unreadable("a type without a name");
    };
    let devices = devices(info);
    let Some(first) = devices.first() else { return Reading::Plain };
    if devices.iter().any(|d| d.name != first.name) {
        return Reading::Unreadable("a type with different accelerators in one machine");
    }
    let count: f64 = devices.iter().map(|d| d.count).sum();
    let Some(count) = AcceleratorCount::from_f64(count).filter(|c| c.ten_thousandths() > 0) else {
        return Reading::Unreadable("a type whose number of accelerators cannot be read");
    };
    let Some(name) = first.name.map(str::trim).filter(|n| !n.is_empty()) else {
        return Reading::Unreadable("a type whose accelerator has no name");
    };
    let reported = first.mib.filter(|m| *m > 0.0).map(|m| m / 1024.0);
    let accelerator = instance_types::accelerator(ID, kind, name, reported);
    let gpu_memory_gib = accelerators::nominal_memory_gib(&accelerator, reported);
    let interconnect = match info.network_info().map(NetworkInfo::efa_supported) {
        Some(Some(true)) => Interconnect::Efa,
        Some(Some(false)) => Interconnect::Ethernet,
        _ => Interconnect::Unknown,
    };
    let shape = Shape {
        instance_type: kind.into(),
        accelerator,
        accelerators: count,
        gpu_memory_gib,
        vcpus: info.v_cpu_info().and_then(VCpuInfo::default_v_cpus).and_then(|n| u32::try_from(n).ok()),
        memory_gib: info.memory_info().and_then(MemoryInfo::size_in_mib).filter(|m| *m > 0).map(|m| m as f64 / 1024.0),
        interconnect,
    };
    let has = |class: &UsageClassType| info.supported_usage_classes().contains(class);
    Reading::Accelerated(Described {
        shape: Arc::new(shape),
        on_demand: has(&UsageClassType::OnDemand),
        spot: has(&UsageClassType::Spot),
        capacity_block: has(&UsageClassType::CapacityBlock),
    })
}

/// All devices that compute. Newer chips of AWS's own stand in two lists; the Neuron list is the better kept one.
fn devices(info: &InstanceTypeInfo) -> Vec<Device<'_>> {
    let mut found: Vec<Device<'_>> = Vec::new();
    for gpu in info.gpu_info().map(GpuInfo::gpus).unwrap_or_default() {
        // A part of a GPU: the count is 0, and the memory that of the part.
        let part = gpu.gpu_partition_size().filter(|p| *p > 0.0 && *p < 1.0);
        let mib = gpu.memory_info().and_then(GpuDeviceMemoryInfo::size_in_mib).map(f64::from);
        found.push(match part {
            Some(part) => Device {
                name: gpu.name(),
                count: f64::from(gpu.logical_gpu_count().unwrap_or(0)) * part,
                mib: mib.map(|m| m / part),
            },
            None => Device { name: gpu.name(), count: f64::from(gpu.count().unwrap_or(0)), mib },
        });
    }
    if !found.is_empty() {
        return found;
    }
    for neuron in info.neuron_info().map(NeuronInfo::neuron_devices).unwrap_or_default() {
        found.push(Device {
            name: neuron.name(),
            count: f64::from(neuron.count().unwrap_or(0)),
            mib: neuron.memory_info().and_then(NeuronDeviceMemoryInfo::size_in_mib).map(f64::from),
        });
    }
    if !found.is_empty() {
        return found;
    }
    for device in info.inference_accelerator_info().map(InferenceAcceleratorInfo::accelerators).unwrap_or_default() {
        found.push(Device {
            name: device.name(),
            count: f64::from(device.count().unwrap_or(0)),
            mib: device.memory_info().and_then(InferenceDeviceMemoryInfo::size_in_mib).map(f64::from),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{GpuDeviceInfo, NeuronDeviceInfo};

    use super::*;

    fn gpu(name: &str, count: i32, mib: i32) -> GpuDeviceInfo {
        GpuDeviceInfo::builder()
            .name(name)
            .count(count)
            .memory_info(GpuDeviceMemoryInfo::builder().size_in_mib(mib).build())
            .build()
    }

    fn with(kind: &str, gpus: Vec<GpuDeviceInfo>) -> InstanceTypeInfo {
        InstanceTypeInfo::builder()
            .instance_type(InstanceType::from(kind))
            .supported_usage_classes(UsageClassType::OnDemand)
            .memory_info(MemoryInfo::builder().size_in_mib(2_097_152).build())
            .network_info(NetworkInfo::builder().efa_supported(true).build())
            .gpu_info(GpuInfo::builder().set_gpus(Some(gpus)).build())
            .build()
    }

    fn accelerated(reading: Reading) -> Option<Described> {
        match reading {
            Reading::Accelerated(described) => Some(described),
            _ => None,
        }
    }

    #[test]
    fn a_p5_is_eight_h100_with_80_gb() {
        let p5 = accelerated(read(&with("p5.48xlarge", vec![gpu("H100", 8, 81_920)])));
        let shape = p5.as_ref().map(|d| d.shape.as_ref());
        assert_eq!(shape.map(|s| s.accelerator.as_str()), Some("H100-80GB-SXM"));
        assert_eq!(shape.map(|s| s.accelerators), Some(AcceleratorCount::whole(8)));
        assert_eq!(shape.and_then(|s| s.gpu_memory_gib), Some(80.0));
        assert_eq!(shape.and_then(|s| s.memory_gib), Some(2048.0));
        assert_eq!(shape.map(|s| s.interconnect), Some(Interconnect::Efa));
        assert!(p5.is_some_and(|d| d.on_demand && !d.spot));
    }

    #[test]
    fn b14_memory_is_that_of_one_and_tells_variants_apart() {
        let name = |kind: &str, mib: i32| {
            accelerated(read(&with(kind, vec![gpu("A100", 8, mib)])))
                .map(|d| (d.shape.accelerator.as_str().to_owned(), d.shape.gpu_memory_gib))
        };
        assert_eq!(name("p4d.24xlarge", 40_960), Some(("A100-40GB-SXM".to_owned(), Some(40.0))));
        assert_eq!(name("p4de.24xlarge", 81_920), Some(("A100-80GB-SXM".to_owned(), Some(80.0))));
    }

    #[test]
    fn a_part_of_a_gpu_is_a_part() {
        let part = GpuDeviceInfo::builder()
            .name("L4")
            .count(0)
            .logical_gpu_count(1)
            .gpu_partition_size(0.125)
            .memory_info(GpuDeviceMemoryInfo::builder().size_in_mib(2_861).build())
            .build();
        let shape = accelerated(read(&with("g6f.large", vec![part]))).map(|d| d.shape);
        assert_eq!(shape.as_ref().map(|s| s.accelerators.to_f64()), Some(0.125));
        assert_eq!(shape.as_ref().map(|s| s.accelerator.as_str()), Some("L4"));
    }

    #[test]
    fn c2_a_chip_that_nobody_knows_is_shown_as_unknown() {
        let shape = accelerated(read(&with("p9.48xlarge", vec![gpu("R400", 8, 500_000)]))).map(|d| d.shape);
        assert_eq!(shape.map(|s| s.accelerator.as_str().to_owned()), Some("unknown:R400".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_says_so_and_what_has_none_is_plain() {
        assert_eq!(read(&with("m7i.large", vec![])), Reading::Plain);
        assert!(matches!(read(&with("x", vec![gpu("H100", 0, 1)])), Reading::Unreadable(_)));
        assert!(matches!(read(&with("x", vec![gpu("H100", -8, 1)])), Reading::Unreadable(_)));
        assert!(matches!(read(&with("x", vec![gpu(" ", 8, 1)])), Reading::Unreadable(_)));
        assert!(matches!(read(&with("x", vec![gpu("H100", 4, 1), gpu("A100", 4, 1)])), Reading::Unreadable(_)));
        assert!(matches!(read(&with("", vec![])), Reading::Unreadable(_)));
    }

    #[test]
    fn aws_own_chips_are_accelerators_too() {
        let trn = InstanceTypeInfo::builder()
            .instance_type(InstanceType::from("trn1.32xlarge"))
            .neuron_info(
                NeuronInfo::builder()
                    .neuron_devices(NeuronDeviceInfo::builder().name("Trainium").count(16).build())
                    .build(),
            )
            .build();
        let shape = accelerated(read(&trn)).map(|d| d.shape);
        assert_eq!(shape.as_ref().map(|s| s.accelerators), Some(AcceleratorCount::whole(16)));
        assert!(shape.is_some_and(|s| s.accelerator.is_known()));
    }
}
