//! `docker-compose.yml` passes every setting on to the process that reads it, and no other variable. The units of the Debian
//! package pass on every secret; all else is in their file of settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use app_config::{Description, describe};
use database::OwnerSettings;
use serde_json::Value;

use crate::harness::described_settings;

/// Settings that `docker-compose.yml` does not pass on, each with a reason.
const NOT_PASSED_ON: [(&str, &str); 1] = [(
    "DATABASE_OWNER_URL",
    "only the migrations may change tables",
)];

/// The services that get a role that owns a schema.
const WITH_OWNER: [&str; 3] = ["bootstrap", "migrate-people-task", "migrate-users"];

fn compose() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docker-compose.yml");
    let text = std::fs::read_to_string(path).unwrap();
    // Reading the file resolves its anchors and merge keys.
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn compose_passes_on_every_setting_and_no_unknown_variable() {
    let compose = compose();
    let mut problems = Vec::new();
    for (process, settings) in described_settings() {
        let environment = compose["services"][process]["environment"]
            .as_object()
            .unwrap_or_else(|| panic!("{process} has no environment"));
        let passed_on: BTreeSet<&str> = environment.keys().map(String::as_str).collect();
        let differences = differences(&settings, &passed_on).into_iter();
        problems.extend(differences.map(|text| format!("{process}: {text}")));
    }
    assert!(problems.is_empty(), "docker-compose.yml: {problems:#?}");
}

#[test]
fn the_units_of_the_debian_package_pass_on_every_secret() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/debian/units");
    for (process, settings) in described_settings() {
        let unit = units.join(format!("countersign-{process}.service"));
        let unit = std::fs::read_to_string(unit).unwrap();
        let secrets = settings.iter().filter(|setting| setting.secret);
        for Description { name, .. } in secrets.filter(|s| s.name != NOT_PASSED_ON[0].0) {
            let (_, rest) = unit
                .split_once(&format!("\nEnvironment={name}_FILE=%d/"))
                .unwrap_or_else(|| panic!("{process} does not get {name}_FILE"));
            let credential = rest.lines().next().unwrap();
            let loaded = format!("\nLoadCredential={credential}:/etc/countersign/secrets/");
            assert!(unit.contains(&loaded), "{process}: {credential}");
        }
    }
}

/// Compose and systemd stop in the reverse of the order in which they start.
#[test]
fn what_calls_a_service_starts_after_it_but_the_gateway_of_the_package() {
    let compose = compose();
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/debian/units");
    for (process, service) in [
        ("gateway", "user-service"),
        ("gateway", "people-task-service"),
        ("deletion-worker", "people-task-service"),
        ("notification-worker", "people-task-service"),
    ] {
        let needed = &compose["services"][process]["depends_on"][service]["condition"];
        assert_eq!(needed, "service_healthy", "{process}");
        let unit = units.join(format!("countersign-{process}.service"));
        let unit = std::fs::read_to_string(unit).unwrap();
        let mut orders = unit.lines().filter_map(|line| line.strip_prefix("After="));
        let service = format!("countersign-{service}.service");
        let is_after = orders.any(|after| after.split(' ').any(|unit| unit == service));
        // The gateway starts without them, to answer while they wait for a migration.
        assert_eq!(is_after, process != "gateway", "{process}: {service}");
    }
}

#[test]
fn images_are_tagged_with_the_version_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy");
    let dockerfile = std::fs::read_to_string(deploy.join("Dockerfile")).unwrap();
    assert!(dockerfile.contains(&format!("\nARG VERSION={version}\n")));
    for overlay in ["small", "large"] {
        let values = deploy.join(format!("kubernetes/overlays/{overlay}/values.env"));
        let values = std::fs::read_to_string(values).unwrap();
        assert!(
            values.contains(&format!("\nCOUNTERSIGN_VERSION={version}\n")),
            "{overlay}"
        );
    }
    let compose = compose();
    let services = compose["services"].as_object().unwrap().values();
    let images = services.filter_map(|service| service["image"].as_str());
    let own: Vec<_> = images
        .filter(|image| image.starts_with("countersign/"))
        .collect();
    assert!(own.len() > 5, "{own:?}");
    for image in own {
        let (_, tag) = image.split_once(':').unwrap();
        assert_eq!(
            tag,
            format!("${{COUNTERSIGN_VERSION:-{version}}}"),
            "{image}"
        );
    }
}

#[test]
fn the_images_are_built_from_every_member_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(members.len() > 5, "{members:?}");
    for member in members {
        let folder = member.split('/').next().unwrap();
        let exception = format!("!{folder}");
        assert!(ignored.lines().any(|line| line == exception), "{exception}");
        for package in packages(&root, member) {
            // The folders `tests` are ignored, and Cargo refuses a package in which it sees no target.
            let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
            let has_target = package.join("src").exists() || manifest.contains("\n[[test]]\n");
            assert!(has_target, "{}", package.display());
        }
    }
}

/// The folders of a member of the workspace, which may be a pattern.
fn packages(root: &Path, member: &str) -> Vec<PathBuf> {
    let Some(folder) = member.strip_suffix("/*") else {
        return vec![root.join(member)];
    };
    let entries = std::fs::read_dir(root.join(folder)).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    folders
        .filter(|path| path.join("Cargo.toml").exists())
        .collect()
}

#[test]
fn only_the_bootstrap_and_the_migrations_get_the_owners_of_the_schemas() {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let gets_owner = |service: &&Value| {
        let secrets = service["secrets"].as_array();
        secrets.is_some_and(|secrets| secrets.iter().any(|s| s.to_string().contains("owner")))
    };
    let with_owner = services.iter().filter(|(_, service)| gets_owner(service));
    let with_owner: BTreeSet<&str> = with_owner.map(|(name, _)| name.as_str()).collect();
    assert_eq!(with_owner, BTreeSet::from(WITH_OWNER));
}

#[test]
fn the_migrations_pass_on_their_settings() {
    let compose = compose();
    let settings = describe::<OwnerSettings>().unwrap();
    for service in ["migrate-people-task", "migrate-users"] {
        let environment = &compose["services"][service]["environment"];
        for setting in &settings {
            let file = format!("{}_FILE", setting.name);
            assert!(environment[&file].is_string(), "{service}: {file}");
        }
    }
}

fn differences(settings: &[Description], passed_on: &BTreeSet<&str>) -> Vec<String> {
    let variables = |setting: &Description| {
        let file = setting.secret.then(|| format!("{}_FILE", setting.name));
        [Some(setting.name.to_owned()), file].into_iter().flatten()
    };
    let old_names = settings.iter().filter_map(|setting| setting.old_name);
    let known: BTreeSet<String> = settings.iter().flat_map(variables).collect();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).chain(old_names).collect();
    let is_missing = |setting: &&Description| {
        let excepted = NOT_PASSED_ON.iter().any(|(name, _)| *name == setting.name);
        !excepted && !variables(setting).any(|name| passed_on.contains(name.as_str()))
    };
    let missing = settings.iter().filter(is_missing);
    let unknown = passed_on.iter().filter(|name| !known.contains(*name));
    missing
        .map(|setting| format!("{} is not passed on", setting.name))
        .chain(unknown.map(|name| format!("{name} is not a setting")))
        .collect()
}
