//! The Kubernetes manifests name only files and settings that exist, and every container of ours has what it needs.
//! `deploy/kubernetes/check` compares them with the schemas of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::described_settings;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/kubernetes")
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => yaml_files(&path),
            Some(extension) if extension == "yaml" => vec![path],
            _ => Vec::new(),
        }
    });
    paths.collect()
}

/// The pods of Deployments and Jobs by their names. The patches for all Deployments are among them.
fn pods() -> BTreeMap<String, Value> {
    let all = yaml_files(&folder().join("base")).into_iter();
    let objects = all.flat_map(|path| documents(&path));
    let with_pods =
        objects.filter(|object| object["kind"] == "Deployment" || object["kind"] == "Job");
    with_pods
        .map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            (name, object["spec"]["template"]["spec"].clone())
        })
        .collect()
}

fn containers(pod: &Value) -> &[Value] {
    pod["containers"].as_array().unwrap()
}

fn variables(container: &Value) -> impl Iterator<Item = &str> {
    let variables = container["env"].as_array().into_iter().flatten();
    variables.map(|variable| variable["name"].as_str().unwrap())
}

/// The names of a process' settings, as variables.
fn known_variables(process: &str) -> BTreeSet<String> {
    let all = described_settings();
    let settings = all.into_iter().filter(|(name, _)| *name == process);
    let settings = settings.flat_map(|(_, settings)| settings);
    let names = settings.flat_map(|setting| {
        let file = setting.secret.then(|| format!("{}_FILE", setting.name));
        [Some(setting.name.to_owned()), file]
    });
    names.flatten().collect()
}

fn overlay_file(overlay: &str, name: &str) -> PathBuf {
    folder().join("overlays").join(overlay).join(name)
}

/// The names in an overlay's `values.env`.
fn values(overlay: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(overlay_file(overlay, "values.env")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, _)| name.to_owned()).collect()
}

/// The values that an overlay puts into manifests.
fn replaced(overlay: &str) -> BTreeSet<String> {
    let [replacements] = &documents(&overlay_file(overlay, "replacements.yaml"))[..] else {
        panic!("one document is expected");
    };
    let sources = replacements.as_array().unwrap().iter();
    let fields = sources.map(|one| one["source"]["fieldPath"].as_str().unwrap());
    let names = fields.map(|field| field.strip_prefix("data.").unwrap().to_owned());
    names.collect()
}

/// The values that an overlay leaves out of the ConfigMap `settings`.
fn removed_from_settings(overlay: &str) -> BTreeSet<String> {
    let [kustomization] = &documents(&overlay_file(overlay, "kustomization.yaml"))[..] else {
        panic!("one document is expected");
    };
    let patches = kustomization["patches"].as_array().unwrap().iter();
    let patch = patches.filter(|patch| patch["target"]["kind"] == "ConfigMap");
    let lines = patch.flat_map(|patch| patch["patch"].as_str().unwrap().lines());
    let paths = lines.map(|line| line.split_once("path: /data/").unwrap().1);
    paths
        .map(|path| path.trim_end_matches('}').to_owned())
        .collect()
}

#[test]
fn every_file_that_a_kustomization_names_exists() {
    let all = yaml_files(&folder());
    let kustomizations = all
        .iter()
        .filter(|path| path.ends_with("kustomization.yaml"));
    let mut count = 0;
    for path in kustomizations {
        let [kustomization] = &documents(path)[..] else {
            panic!("{path:?} has several documents");
        };
        let list = |name: &str| kustomization[name].as_array().cloned().unwrap_or_default();
        let envs = list("configMapGenerator").into_iter().flat_map(|one| {
            let envs = one["envs"].as_array().cloned();
            envs.unwrap_or_default()
        });
        let patches = list("patches").into_iter().chain(list("replacements"));
        let patches = patches.map(|patch| patch["path"].clone());
        let named = list("resources").into_iter().chain(list("components"));
        for file in named.chain(envs).chain(patches) {
            if let Some(file) = file.as_str() {
                let target = path.parent().unwrap().join(file);
                assert!(target.exists(), "{path:?} names {file}");
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn deployments_set_only_settings_of_their_processes() {
    let pods = pods();
    let shared = containers(&pods["every-deployment"]);
    for process in described_settings().into_iter().map(|(name, _)| name) {
        let Some(pod) = pods.get(process) else {
            assert_eq!(process, "demo-engine");
            continue;
        };
        let known = known_variables(process);
        for container in containers(pod).iter().chain(shared) {
            for variable in variables(container) {
                assert!(
                    known.contains(variable),
                    "{process}: {variable} is not a setting"
                );
            }
        }
    }
}

#[test]
fn each_process_gets_the_settings_of_an_overlay_and_no_unknown_one() {
    let all = described_settings().into_iter();
    let known: BTreeSet<String> = all.flat_map(|(name, _)| known_variables(name)).collect();
    let [shared] = &containers(&pods()["every-deployment"]).to_vec()[..] else {
        panic!("one container is expected");
    };
    // Of two with one name, the later one counts.
    let sources = shared["envFrom"].as_array().unwrap().iter();
    let sources: Vec<_> = sources
        .map(|source| &source["configMapRef"]["name"])
        .collect();
    assert_eq!(sources, ["defaults", "settings"]);
    let fixed: BTreeSet<String> = pods()
        .values()
        .flat_map(containers)
        .flat_map(variables)
        .map(str::to_owned)
        .collect();
    for overlay in ["small", "large"] {
        let (values, replaced) = (values(overlay), replaced(overlay));
        assert!(replaced.len() > 5, "{overlay}: {replaced:?}");
        assert!(replaced.is_subset(&values), "{overlay}");
        // What the manifests set themselves would win over them.
        let without_effect: Vec<_> = values.intersection(&fixed).collect();
        assert!(without_effect.is_empty(), "{overlay}: {without_effect:?}");
        // Only settings are in the ConfigMap that the pods read.
        let removed = removed_from_settings(overlay);
        assert_eq!(removed, &replaced - &known, "{overlay}");
        let unknown = &(&values - &removed) - &known;
        assert_eq!(unknown, BTreeSet::new(), "{overlay}");
    }
}

#[test]
fn containers_are_limited_probed_and_have_no_privileges() {
    let pods = pods();
    let [shared] = containers(&pods["every-deployment"]) else {
        panic!("one container is expected");
    };
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert!(shared[probe]["httpGet"]["path"].is_string(), "{probe}");
    }
    let mut ours = 0;
    for (name, pod) in &pods {
        let is_job = pod["restartPolicy"].is_string();
        let is_patch = !is_job && containers(pod)[0]["image"].is_null();
        for container in containers(pod) {
            let image = container["image"].as_str().unwrap_or_default();
            if is_patch {
                continue;
            }
            ours += 1;
            // The tags of ours are in values.env.
            assert!(
                image.starts_with("countersign/") || image.contains(':'),
                "{name}: {image}"
            );
            for limit in ["requests", "limits"] {
                let memory = &container["resources"][limit]["memory"];
                assert!(memory.is_string(), "{name} has no memory in {limit}");
            }
            // Those of Deployments are in the patch for all of them.
            let security = if is_job { container } else { shared };
            let security = &security["securityContext"];
            assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
            assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
            assert_eq!(security["capabilities"]["drop"][0], "ALL", "{name}");
        }
    }
    assert!(ours >= 9, "{ours}");
}
