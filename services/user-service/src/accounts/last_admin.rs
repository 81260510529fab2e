use values::UserId;

use super::error::AccountError;
use super::store::User;

/// Refuses a change after which the system would have no active administrator. `admins` is what
/// `store::lock_active_admins` returned.
pub(crate) fn check_not_last_admin(user: &User, admins: &[UserId]) -> Result<(), AccountError> {
    if user.is_active_admin() && admins.iter().all(|admin| *admin == user.id) {
        return Err(AccountError::LastAdmin);
    }
    Ok(())
}
