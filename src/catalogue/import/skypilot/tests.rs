use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::catalogue::import::{LeftOut, Noted};

const HEADER: &str =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Price,SpotPrice,Region,AvailabilityZone";

fn tables(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn import(files: &[(&str, &str)]) -> Result<Import, Vec<ImportError>> {
    skypilot(tables(files).path())
}

fn refusals(body: &str) -> Vec<String> {
    let text = format!("{HEADER}\n{body}");
    let dir = tables(&[("aws/vms.csv", &text)]);
    let found = skypilot(dir.path()).unwrap_err();
    assert!(found.iter().all(|e| e.file.ends_with("aws/vms.csv")));
    found.iter().map(|e| format!("{}: {}", e.line.unwrap_or(0), e.reason)).collect()
}

#[test]
fn both_layouts_and_any_order_of_columns_are_read() {
    let aws = format!(
        "{HEADER}\n\
         p4d.24xlarge,96.0,1152.0,A100,8.0,\"{{'Gpus': [{{'Name': 'A100', 'MemoryInfo': {{'SizeInMiB': 40960}}}}], \
         'TotalGpuMemoryInMiB': 327680}}\",21.96,2.4712,us-east-1,use1-az1\n\
         m5.large,2.0,8.0,,,,0.096,0.03,us-east-1,use1-az1\n\
         p5e.48xlarge,192,2048,H200,8,,,12.5,us-east-1,use1-az1\n\
         x9.large,4,16,R100,1,,0,,us-east-1,\n"
    );
    let lambda =
        "Region,Price,AcceleratorCount,AcceleratorName,InstanceType\nus-east-1,3.29,1.0,H100,gpu_1x_h100_pcie\n";
    let dir = tables(&[("aws/vms.csv", &aws), ("lambda.csv", lambda), ("README.md", "x"), ("common/other.csv", "x")]);
    let import = skypilot(dir.path()).unwrap();
    assert_eq!((import.read(), import.kept()), (5, 4));
    let rows = import.catalogue.rows_of("aws");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].shape.accelerator.as_str(), "A100-40GB-SXM");
    assert_eq!(rows[0].spot.unwrap().micros(), 2_471_200);
    assert_eq!((rows[1].on_demand, rows[1].shape.accelerator.as_str()), (None, "H200-141GB-SXM"));
    assert_eq!((rows[2].on_demand, rows[2].zone.as_ref()), (None, None), "a price of zero is unknown");
    assert_eq!(rows[2].shape.accelerator.as_str(), "unknown:R100");
    assert_eq!(import.catalogue.rows_of("lambda")[0].shape.accelerator.as_str(), "H100-80GB-PCIe");
    let report = &import.files[0];
    assert_eq!(report.left_out.get(&LeftOut::NoAccelerator), Some(&1));
    assert_eq!(report.noted.get(&Noted::NoOnDemandPrice), Some(&2));
    assert_eq!(report.noted.get(&Noted::UnknownAccelerator), Some(&1));
    assert!(import.catalogue.date() > DateTime::UNIX_EPOCH, "the file's own time");
    for report in &import.files {
        assert_eq!(report.read, report.kept + report.left_out.values().sum::<usize>());
    }
    let text = table::write(&import.catalogue, "imported");
    assert_eq!(table::read(&text).unwrap(), import.catalogue);
}

#[test]
fn b7_machine_and_accelerators_in_separate_rows_are_one_price() {
    let gcp = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n\
        a2-highgpu-1g,12,85,,,,us-central1,us-central1-a,0.73948,0.29576\n\
        a3-highgpu-8g,208,1872,,,,us-central1,us-central1-a,9.46,2.17\n\
        a4-highgpu-8g,224,3968,,,,us-central1,us-central1-b,0.0,0.0\n\
        a3-ultragpu-8g,224,2952,,,,us-south1,us-south1-b,14.47387,3.15354\n\
        n1-standard-8,8,30,,,,us-central1,us-central1-a,0.38,0.08\n\
        ,,,A100,1.0,A100,us-central1,us-central1-a,2.93391,1.17\n\
        ,,,H100-MEGA,8.0,H100-MEGA,us-central1,us-central1-a,80,40\n\
        ,,,B200,8.0,B200,us-central1,us-central1-b,90.216,32.6064\n\
        ,,,H200,8.0,H200,us-south1,us-south1-b,36.60258,43.9512\n\
        ,,,T4,1.0,T4,us-central1,us-central1-a,0.35,0.11\n";
    let import = import(&[("gcp/vms.csv", gcp)]).unwrap();
    let found = |kind: &str| import.catalogue.rows().iter().find(|r| r.shape.instance_type == *kind).unwrap();
    let a2 = found("a2-highgpu-1g");
    assert_eq!(a2.on_demand.unwrap().micros(), 3_673_390);
    assert_eq!(a2.spot.unwrap().micros(), 1_465_760);
    assert_eq!(a2.shape.accelerator.as_str(), "A100-40GB-SXM");
    assert_eq!(found("a3-highgpu-8g").on_demand, None, "the price of another chip is not added");
    assert_eq!(found("a4-highgpu-8g").on_demand, None, "a part without a price leaves the sum unknown");
    let h200 = found("a3-ultragpu-8g");
    assert_eq!((h200.on_demand, h200.spot.unwrap().micros()), (None, 47_104_740));
    let report = &import.files[0];
    assert_eq!(report.kept, 4);
    assert_eq!(report.noted.get(&Noted::PartBelowSpot), Some(&1));
    assert_eq!(report.left_out.get(&LeftOut::AddedToMachine), Some(&3));
    assert_eq!(report.left_out.get(&LeftOut::NoMachine), Some(&2));
    assert_eq!(report.left_out.get(&LeftOut::NoAccelerator), Some(&1));
}

#[test]
fn nonsense_is_refused_with_all_its_lines() {
    let found = refusals(
        "a,4,16,T4,1,,-3,,r,\n\
         b,4,16,T4,1,,NaN,,r,\n\
         c,4,16,T4,1,,inf,,r,\n\
         d,4,16,T4,0,,1,,r,\n\
         e,4,16,T4,-1,,1,,r,\n\
         f,4,16,T4,99999,,1,,r,\n\
         g,4,1e9,T4,1,,1,,r,\n\
         h,4,16,T4,1,,200000,,r,\n\
         i,4,16,T4,1,,cheap,,r,\n\
         j,4,16,T4,1,,1,,,\n\
         k,4,16,T4,1,,1,-1,r,\n\
         fine,4,16,T4,1,,1,0.5,r,\n\
         ,4,16,,1,,1,,r,\n\
         =l,4,16,T4,1,,1,,r,\n\
         m\u{1b}[2J,4,16,T4,1,,1,,r,\n\
         n,4,16,T4,,,1,,r,\n",
    );
    let lines: Vec<u32> = found.iter().map(|f| f.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17]);
    assert_eq!(found[0], "2: Price -3 is below zero");
    assert_eq!(found[1], "3: Price 'NaN' is not a finite number");
    assert_eq!(found[3], "5: AcceleratorCount '0' of T4 is not above zero");
    assert_eq!(found[10], "12: SpotPrice -1 is below zero");
}

#[test]
fn what_is_no_table_is_refused_as_such() {
    let reason = |files: &[(&str, &str)]| import(files).unwrap_err()[0].to_string();
    assert!(reason(&[("aws/vms.csv", "InstanceType,Price\na,1\n")]).ends_with(
        "aws/vms.csv line 1: not a price table: the column AcceleratorName, AcceleratorCount, Region is missing"
    ));
    assert!(reason(&[("aws/vms.csv", "")]).contains("not a price table"));
    assert!(reason(&[("readme.txt", "x")]).contains("there is no CLOUD/vms.csv and no CLOUD.csv in it"));
    assert!(reason(&[("aws/vms.csv", HEADER), ("aws.csv", HEADER)]).contains("two tables"));
    let dir = tempfile::tempdir().unwrap();
    assert!(skypilot(&dir.path().join("absent")).unwrap_err()[0].reason.starts_with("cannot be read"));
    fs::write(dir.path().join("aws.csv"), [HEADER.as_bytes(), b"\na\xff,4,16,T4,1,,1,,r,\n"].concat()).unwrap();
    let found = skypilot(dir.path()).unwrap_err();
    assert_eq!((found[0].line, found[0].reason.as_str()), (Some(2), "it is not UTF-8 text"));
}

#[test]
fn a_hostile_table_fills_neither_memory_nor_screen() {
    let long = "x".repeat(IMPORT_FIELD_BYTES + 1);
    let found = refusals(&format!("a,4,16,T4,1,{long},1,,r,\n"));
    assert_eq!(found, ["2: a field has 4097 characters, more than 4096"]);
    let many: String = (0..5_000).map(|_| "a,4,16,T4,1,,-1,,r,\n").collect();
    assert_eq!(refusals(&many).len(), IMPORT_FINDINGS);
    let error = ImportError { file: "a\u{1b}[2J".into(), line: Some(1), reason: "b\u{7}".to_owned() };
    assert_eq!(error.to_string(), "a\\u{1b}[2J line 1: b\\u{7}");
}

#[test]
fn a_spot_column_that_repeats_the_list_price_is_left_out() {
    let body: Vec<String> = (0..25).map(|i| format!("1x_L40S_SECURE,12,62,L40S,1,,0.99,0.99,US,US-{i}")).collect();
    let body = body.join("\n");
    let report = import(&[("runpod/vms.csv", &format!("{HEADER}\n{body}"))]).unwrap();
    assert!(report.catalogue.rows().iter().all(|r| r.spot.is_none() && r.on_demand.is_some()));
    assert_eq!(report.files[0].noted.get(&Noted::SpotRepeatsOnDemand), Some(&25));
}

#[test]
fn b14_a_total_that_means_one_gpu_is_told_from_one_that_means_all() {
    let row = |kind: &str, chip: &str, count: u32, total: u32| {
        format!("{kind},8,64,{chip},{count},{{'TotalGpuMemoryInMiB': {total}}},1,,us,\n")
    };
    let body = [row("a", "A100", 8, 40_960), row("b", "A100", 8, 655_360), row("c", "T4", 2, 32_768)].concat();
    let import = import(&[("modal.csv", &format!("{HEADER}\n{body}"))]).unwrap();
    let found: Vec<_> = import
        .catalogue
        .rows()
        .iter()
        .map(|r| (r.shape.accelerator.to_string(), r.shape.gpu_memory_gib.unwrap()))
        .collect();
    assert_eq!(found, [("A100-40GB".to_owned(), 40.0), ("A100-80GB".to_owned(), 80.0), ("T4".to_owned(), 16.0)]);
    assert!(!import.files[0].noted.contains_key(&Noted::MemoryDisagrees));
}

#[test]
fn b14_the_memory_in_a_description_is_read_in_its_spellings() {
    let info = "{'Gpus': [{'Name': 'L4', 'MemoryInfo': {'SizeInMiB': 22888}}]}";
    assert!((gpu_memory(info).unwrap() - 22.351_562_5).abs() < 1e-9);
    assert_eq!(gpu_memory("{\"Gpus\":[{\"MemoryInfo\":{\"SizeInMiB\": 81920}}]}"), Some(80.0));
    assert_eq!(gpu_memory("{'MemoryInfo': {'SizeInMiB': 80.0}}"), Some(80.0), "GB under the other key");
    assert_eq!(gpu_memory("{'TotalGpuMemoryInMiB': 48}"), Some(48.0));
    for none in ["", "H100", "SizeInMiB", "{'SizeInMiB': None}", "SizeInMiB: 0", "SizeInMiB: -5"] {
        assert_eq!(gpu_memory(none), None, "{none}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_table_panics_and_no_row_is_lost(body in proptest::collection::vec("[a-zA-Z0-9.,\"'\u{e9} -]{0,60}", 0..12)) {
        let text = format!("{HEADER}\n{}", body.join("\n"));
        match import(&[("x/vms.csv", &text)]) {
            Ok(import) => {
                for report in &import.files {
                    prop_assert_eq!(report.read, report.kept + report.left_out.values().sum::<usize>());
                }
            }
            Err(found) => prop_assert!(!found.is_empty() && found.len() <= IMPORT_FINDINGS),
        }
    }
}
