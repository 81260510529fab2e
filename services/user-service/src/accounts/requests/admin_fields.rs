use http_kit::Fields;
use utoipa::ToSchema;

use super::field_values::{Metadata, Plan, Scopes, Vendor};

/// The fields of a new user that only an administrator's token sets. For other callers they are ignored and the
/// defaults apply, as they do for a field that is absent.
#[derive(Debug, Default, ToSchema)]
#[schema(as = NewUserAdminFields, rename_all = "camelCase")]
pub(crate) struct AdminFields {
    /// `["user"]` by default.
    #[schema(inline)]
    pub(crate) scope: Option<Scopes>,
    /// True by default. The token of an inactive user is already revoked.
    pub(crate) is_active: Option<bool>,
    /// `DEFAULT_USER_PLAN` by default.
    #[schema(inline)]
    pub(crate) plan: Option<Plan>,
    /// `DEFAULT_USER_VENDOR` by default; null for none.
    #[schema(value_type = Option<Vendor>, inline)]
    pub(crate) vendor: Option<Option<Vendor>>,
    /// `{}` by default.
    #[schema(inline)]
    pub(crate) metadata: Option<Metadata>,
}

impl AdminFields {
    pub(super) fn read(fields: &mut Fields) -> Self {
        Self {
            scope: fields.optional("scope"),
            is_active: fields.optional("isActive"),
            plan: fields.optional("plan"),
            vendor: fields.nullable("vendor"),
            metadata: fields.optional("metadata"),
        }
    }

    /// The names of the fields that are present.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let fields = [
            ("scope", self.scope.is_some()),
            ("isActive", self.is_active.is_some()),
            ("plan", self.plan.is_some()),
            ("vendor", self.vendor.is_some()),
            ("metadata", self.metadata.is_some()),
        ];
        let present = fields.into_iter().filter(|(_, present)| *present);
        present.map(|(name, _)| name).collect()
    }
}
