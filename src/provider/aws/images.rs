//! Which image a machine boots from, and its disks.

use std::sync::{Arc, PoisonError};

use aws_sdk_ec2::types::{BlockDeviceMapping, EbsBlockDevice, Image as Described};

use super::ec2::{Ec2, filter};
use crate::domain::{ErrorClass, Region, Shape};
use crate::provider::Result;

/// Amazon's own images with drivers and a container runtime, newest wins.
const NVIDIA: &str = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *";
const NVIDIA_ARM: &str = "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *";
const NEURON: &str = "Deep Learning Base Neuron AMI (Ubuntu 24.04) *";

/// What a machine needs of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ImageKind {
    /// NVIDIA's drivers on x86.
    Nvidia,
    /// NVIDIA's drivers on AWS's or NVIDIA's own ARM processors.
    NvidiaArm,
    /// AWS's Neuron drivers, for Trainium and Inferentia.
    Neuron,
}

impl ImageKind {
    /// For a shape, by its type's name: EC2's families are bound to one processor and one maker.
    pub(super) fn of(shape: &Shape) -> Self {
        let kind = shape.instance_type.as_str();
        if kind.starts_with("trn") || kind.starts_with("inf") {
            Self::Neuron
        } else if kind.starts_with("g5g.") || kind.starts_with("p6e-") {
            Self::NvidiaArm
        } else {
            Self::Nvidia
        }
    }

    const fn name_pattern(self) -> &'static str {
        match self {
            Self::Nvidia => NVIDIA,
            Self::NvidiaArm => NVIDIA_ARM,
            Self::Neuron => NEURON,
        }
    }

    const fn architecture(self) -> &'static str {
        match self {
            Self::Nvidia | Self::Neuron => "x86_64",
            Self::NvidiaArm => "arm64",
        }
    }
}

/// An image, and its disks as they are asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) disks: Vec<BlockDeviceMapping>,
}

impl Ec2 {
    /// The image for a shape in a region: the settings' one, or the newest of Amazon's. Kept for as long as the program
    /// runs, so that a launch sent again with its token is the same request.
    pub(super) async fn image(&self, region: &Region, shape: &Shape) -> Result<Arc<Image>> {
        let key = (region.clone(), ImageKind::of(shape));
        if let Some(known) = self.images.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let site = self.site("DescribeImages", region);
        let named = self.settings.region.get(region.as_str()).and_then(|r| r.image.clone());
        let call = self.client(&site)?.describe_images();
        let call = if let Some(id) = &named {
            call.image_ids(id)
        } else {
            let pattern = self.settings.image_name.clone().unwrap_or_else(|| key.1.name_pattern().to_owned());
            call.owners("amazon")
                .filters(filter("name", [pattern]))
                .filters(filter("state", ["available".to_owned()]))
                .filters(filter("architecture", [key.1.architecture().to_owned()]))
        };
        let answer = call.send().await.map_err(|e| site.sdk(&e))?;
        // Dates are RFC 3339 in one form, so the texts sort as the times do; the id settles a tie.
        let newest = answer
            .images()
            .iter()
            .filter(|i| i.image_id().is_some_and(|id| !id.is_empty()))
            .max_by_key(|i| (i.creation_date().map(str::to_owned), i.image_id().map(str::to_owned)));
        let Some(newest) = newest else {
            let wanted = named.unwrap_or_else(|| {
                let pattern = self.settings.image_name.as_deref().unwrap_or(key.1.name_pattern());
                format!("Amazon's images named '{pattern}' ({})", key.1.architecture())
            });
            return Err(site.error(
                ErrorClass::Invalid,
                format!(
                    "there is no image {wanted}; name one as `image` in `[providers.aws.region.{region}]` of the configuration"
                ),
            ));
        };
        let image = Arc::new(Image {
            id: newest.image_id().unwrap_or_default().to_owned(),
            disks: disks(newest, self.settings.disk_gib),
        });
        self.images.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&image));
        Ok(image)
    }
}

/// The image's disks, all of them to go with the machine: an image may say otherwise, and what stays is billed on.
fn disks(image: &Described, boot_gib: Option<u32>) -> Vec<BlockDeviceMapping> {
    let mut disks = Vec::new();
    for mapping in image.block_device_mappings() {
        let (Some(device), Some(ebs)) = (mapping.device_name(), mapping.ebs()) else { continue };
        let wanted = boot_gib.filter(|_| image.root_device_name() == Some(device)).and_then(|g| i32::try_from(g).ok());
        let disk = EbsBlockDevice::builder().delete_on_termination(true).set_volume_size(ebs.volume_size().max(wanted));
        disks.push(BlockDeviceMapping::builder().device_name(device).ebs(disk.build()).build());
    }
    disks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(own: i32) -> Described {
        let ebs = |gib: i32| EbsBlockDevice::builder().volume_size(gib).delete_on_termination(false).build();
        let disk = |name: &str, gib| BlockDeviceMapping::builder().device_name(name).ebs(ebs(gib)).build();
        Described::builder()
            .root_device_name("/dev/sda1")
            .block_device_mappings(disk("/dev/sda1", own))
            .block_device_mappings(disk("/dev/sdb", 10))
            .block_device_mappings(
                BlockDeviceMapping::builder().device_name("/dev/sdc").virtual_name("ephemeral0").build(),
            )
            .build()
    }

    #[test]
    fn every_disk_goes_with_its_machine_even_if_the_image_says_otherwise() {
        let asked = disks(&image(75), None);
        assert_eq!(asked.len(), 2);
        assert!(asked.iter().all(|d| d.ebs().and_then(EbsBlockDevice::delete_on_termination) == Some(true)));
    }

    #[test]
    fn the_boot_disk_grows_and_never_shrinks() {
        let boot = |own, wanted| disks(&image(own), wanted).first().and_then(|d| d.ebs()?.volume_size());
        assert_eq!(boot(75, Some(200)), Some(200));
        assert_eq!(boot(300, Some(200)), Some(300));
        assert_eq!(boot(75, None), Some(75));
    }
}
