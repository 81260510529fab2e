//! The secrets of new tasks. They are random, unless they must be made again: for mails, or for repeats of the request.

use auth::MailKeys;
use values::{Fingerprint, Secret, TaskId};

use crate::idempotency::StoredAnswer;
use crate::mailing::{MailPlan, Mailing, Part, Seed};
use crate::status::is_restricted;
use crate::tasks::requests::{CreateTaskRequest, MailLanguage};
use crate::tasks::secrets;

pub(super) struct NewSecrets {
    /// Those that the response tells: the approver's, or one that only opens the task, and the requester's.
    pub(super) told: [Secret; 2],
    pub(super) hashes: [Fingerprint; 2],
    /// The hash of the secret that only opens the task, if it is restricted who decides.
    pub(super) reading_hash: Option<Fingerprint>,
    pub(super) mail: Option<MailPlan>,
    /// What the secrets that are told are derived from, and their hashes, if the request may be repeated.
    pub(super) stored: Option<[(Seed, Vec<u8>); 2]>,
}

impl NewSecrets {
    /// `repeat_keys` are for a request that may be repeated.
    pub(super) fn new(
        id: TaskId,
        fields: &CreateTaskRequest,
        mailing: &Mailing,
        repeat_keys: Option<&MailKeys>,
    ) -> Self {
        let mail_keys = mailing.keys_for(fields.notify);
        let key = mail_keys.or(repeat_keys).map(MailKeys::current);
        let (approver_seed, requester_seed) = (Seed::random(), Seed::random());
        let secret = |seed: Seed, part| match key {
            Some(key) => seed.secret(key, id, part),
            None => secrets::generate(id),
        };
        let approver = secret(approver_seed, Part::Approver);
        let requester = secret(requester_seed, Part::Requester);
        let is_restricted = is_restricted(fields.deciders, fields.self_approval);
        let reader = is_restricted.then(|| secret(approver_seed, Part::Reader));
        let hashes = [&approver, &requester].map(Secret::fingerprint);
        let reading_hash = reader.as_ref().map(Secret::fingerprint);
        let told = [reader.unwrap_or(approver), requester];
        let hashed = |seed, secret: &Secret| (seed, secret.fingerprint().as_bytes().to_vec());
        let language = fields.language.map(|MailLanguage(language)| language);
        Self {
            mail: mail_keys.map(|_| MailPlan {
                language: language.unwrap_or(mailing.language),
                approver_seed,
                requester_seed,
            }),
            stored: repeat_keys.map(|_| {
                let [approver, requester] = &told;
                [
                    hashed(approver_seed, approver),
                    hashed(requester_seed, requester),
                ]
            }),
            told,
            hashes,
            reading_hash,
        }
    }
}

/// The secrets of an answer, derived again with the keys with which they were. `None` if this process does not know them.
pub(super) fn of_answer(
    answer: &StoredAnswer,
    mailing: &Mailing,
    repeat_keys: &MailKeys,
) -> Option<[Secret; 2]> {
    let of_mails = mailing.keys.iter().flat_map(MailKeys::all);
    let all: Vec<_> = of_mails.chain(repeat_keys.all()).collect();
    let derive = |(seed, hash): &(Seed, Vec<u8>), part| {
        let derived = |key| [part, Part::Reader].map(|part| seed.secret(key, answer.task, part));
        let mut derived = all.iter().flat_map(|key| derived(*key));
        derived.find(|secret| secret.fingerprint().matches(hash))
    };
    let [approver, requester] = answer.secrets.as_ref()?;
    Some([
        derive(approver, Part::Approver)?,
        derive(requester, Part::Requester)?,
    ])
}
