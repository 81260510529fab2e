//! As much of an OpenAPI document as merging needs to know; the rest goes through unread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A document.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) paths: BTreeMap<String, PathItem>,
    /// Kind, then name.
    #[serde(default)]
    pub(super) components: BTreeMap<String, Map<String, Value>>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// The operations of a path.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PathItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) get: Option<Operation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) put: Option<Operation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) post: Option<Operation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delete: Option<Operation>,
    /// Parameters of every operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parameters: Vec<Value>,
}

impl PathItem {
    /// The place of a method's operation; methods that no route of ours has share `None`.
    pub(super) fn operation(&self, method: &str) -> Option<&Operation> {
        match method {
            "GET" => self.get.as_ref(),
            "PUT" => self.put.as_ref(),
            "POST" => self.post.as_ref(),
            "DELETE" => self.delete.as_ref(),
            _ => None,
        }
    }

    /// Puts an operation in its method's place.
    pub(super) fn set(&mut self, method: &str, operation: Operation) {
        match method {
            "GET" => self.get = Some(operation),
            "PUT" => self.put = Some(operation),
            "POST" => self.post = Some(operation),
            "DELETE" => self.delete = Some(operation),
            _ => {}
        }
    }
}

/// One operation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operation {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parameters: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_body: Option<Value>,
    #[serde(default)]
    pub(super) responses: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Value>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}
