//! The secrets of new tasks. They are random, unless they must be made again: for mails, or for repeats of the request.

use auth::{MailKey, MailKeys};
use values::{Secret, TaskId};

use crate::idempotency::{RepeatKeys, StoredAnswer};
use crate::mailing::{MailPlan, Mailing, Part, Seed};
use crate::tasks::deciders::is_restricted;
use crate::tasks::requests::{CreateTaskRequest, MailLanguage};
use crate::tasks::secrets;

/// The secrets of a new task.
pub(super) struct NewSecrets {
    /// Those that the response tells: the approver's and the requester's.
    pub(super) secrets: [Secret; 2],
    /// The secret of the approver's link, if the response tells one that only opens the task.
    pub(super) link: Option<Secret>,
    /// How mails are sent about the task, if they are.
    pub(super) mail: Option<MailPlan>,
    /// What the secrets are derived from, and their hashes, if the request may be repeated.
    pub(super) stored: Option<[(Seed, Vec<u8>); 2]>,
}

impl NewSecrets {
    pub(super) fn new(
        id: TaskId,
        fields: &CreateTaskRequest,
        mailing: &Mailing,
        keys: Option<&RepeatKeys>,
    ) -> Self {
        let (mail, seeds, secrets) = seeded(id, fields, mailing, keys);
        let told = is_restricted(fields.deciders, fields.self_approval).then(|| {
            let of_mails = mail.as_ref().and(mailing.keys.as_ref());
            let key = of_mails.map(MailKeys::current);
            reading_secret(id, seeds, key.or(keys.map(RepeatKeys::current)))
        });
        let (link, secrets) = told.map_or((None, secrets.clone()), |told| {
            let [link, requester] = secrets;
            (Some(link), [told, requester])
        });
        let stored = seeds.filter(|_| keys.is_some()).map(|seeds| {
            let hash = |secret: &Secret| secret.fingerprint().as_bytes().to_vec();
            let ([of_approver, of_requester], [approver, requester]) = (seeds, &secrets);
            [
                (of_approver, hash(approver)),
                (of_requester, hash(requester)),
            ]
        });
        Self {
            secrets,
            link,
            mail,
            stored,
        }
    }
}

/// The approver's and the requester's secrets, and what they are derived from if they must be made again.
fn seeded(
    id: TaskId,
    fields: &CreateTaskRequest,
    mailing: &Mailing,
    keys: Option<&RepeatKeys>,
) -> (Option<MailPlan>, Option<[Seed; 2]>, [Secret; 2]) {
    let language = fields.language.map(|MailLanguage(language)| language);
    let planned = mailing.plan(id, fields.notify, language);
    match (planned, keys) {
        (Some((mail, secrets)), _) => {
            let seeds = [mail.approver_seed, mail.requester_seed];
            (Some(mail), Some(seeds), secrets)
        }
        (None, Some(keys)) => {
            let seeds = [Seed::random(), Seed::random()];
            let [approver, requester] = seeds;
            let secrets = [
                approver.secret(keys.current(), id, Part::Approver),
                requester.secret(keys.current(), id, Part::Requester),
            ];
            (None, Some(seeds), secrets)
        }
        (None, None) => (None, None, [secrets::generate(id), secrets::generate(id)]),
    }
}

/// A secret that only opens the task. It can be made again if the others can.
fn reading_secret(id: TaskId, seeds: Option<[Seed; 2]>, key: Option<&MailKey>) -> Secret {
    match (seeds, key) {
        (Some([seed, _]), Some(key)) => seed.secret(key, id, Part::Reader),
        _ => secrets::generate(id),
    }
}

impl NewSecrets {
    /// The approver's and the requester's.
    pub(super) fn stored_secrets(&self) -> [&Secret; 2] {
        let [told, requester] = &self.secrets;
        [self.link.as_ref().unwrap_or(told), requester]
    }

    /// The secret that only opens the task, if it is restricted who decides.
    pub(super) fn reading_secret(&self) -> Option<&Secret> {
        let [told, _] = &self.secrets;
        self.link.as_ref().map(|_| told)
    }
}

/// The secrets of an answer, derived again with the keys with which they were. `None` if this process does not know them.
pub(super) fn of_answer(
    answer: &StoredAnswer,
    mailing: &Mailing,
    keys: &RepeatKeys,
) -> Option<[Secret; 2]> {
    let of_mails = mailing.keys.iter().flat_map(MailKeys::all);
    let all: Vec<_> = of_mails.chain(keys.all()).collect();
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
