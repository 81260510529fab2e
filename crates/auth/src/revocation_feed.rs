use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::revocation::FullRead;
use crate::{RevocationFeed, Verifier};

/// A full read drops epochs that no unexpired token is below.
const FULL_READ_INTERVAL: Duration = Duration::from_secs(3600);

/// Where the feed comes from.
pub trait FeedSource {
    /// Why a page could not be read.
    type Error;

    /// The page of at most [`FeedReader::PAGE`] epochs at a cursor; without one, the first page of all.
    fn read(
        &self,
        cursor: Option<&str>,
    ) -> impl Future<Output = Result<RevocationFeed, Self::Error>> + Send;
}

/// Follows the revocation feed, and keeps a [`Verifier`] up to date with it.
///
/// It reads everything once. Then it reads changes, and from time to time, page by page between them, everything
/// again. A page of another incarnation of the database makes it start from the beginning.
#[derive(Debug)]
pub struct FeedReader {
    verifier: Arc<Verifier>,
    incarnation: Option<String>,
    /// The cursor of the next changes; `None` until everything was read once.
    cursor: Option<String>,
    full_read: Option<FullRead>,
    next_full_read: Instant,
}

impl FeedReader {
    /// The maximum number of epochs in a page.
    pub const PAGE: u32 = 10_000;

    /// The longest time that the user service lets a reader wait for changes.
    pub const MAX_WAIT: Duration = Duration::from_secs(1);

    /// Creates a reader that has read nothing.
    pub fn new(verifier: Arc<Verifier>) -> Self {
        Self {
            verifier,
            incarnation: None,
            cursor: None,
            full_read: None,
            next_full_read: Instant::now(),
        }
    }

    /// Reads what has changed; the first time and after a change of the incarnation, everything.
    ///
    /// # Errors
    /// A page could not be read. What was read before stays in force, and the next poll continues there.
    pub async fn poll<Source: FeedSource>(&mut self, source: &Source) -> Result<(), Source::Error> {
        self.read_changes(source).await?;
        while self.cursor.is_none() {
            if !self.read_page(source).await? {
                return Ok(());
            }
        }
        if Instant::now() >= self.next_full_read {
            self.read_page(source).await?;
        }
        Ok(())
    }

    async fn read_changes<Source: FeedSource>(
        &mut self,
        source: &Source,
    ) -> Result<(), Source::Error> {
        while let Some(cursor) = self.cursor.as_deref() {
            let page = source.read(Some(cursor)).await?;
            if self.starts_over(&page) {
                return Ok(());
            }
            self.cursor = Some(page.next);
            let revocations = self.verifier.revocations();
            revocations.set_max_token_lifetime(page.max_token_lifetime);
            revocations.raise(page.epochs);
            if !page.more {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the next page of everything. `false` if the incarnation changed between two pages.
    async fn read_page<Source: FeedSource>(
        &mut self,
        source: &Source,
    ) -> Result<bool, Source::Error> {
        let revocations = self.verifier.revocations();
        let read = self.full_read.get_or_insert_with(|| {
            revocations.start_full_read();
            FullRead::default()
        });
        let is_first = read.cursor.is_none();
        let page = source.read(read.cursor.as_deref()).await?;
        if self.starts_over(&page) && !is_first {
            return Ok(false);
        }
        let mut read = self.full_read.take().unwrap_or_default();
        read.add(&page.epochs);
        if page.more {
            read.cursor = Some(page.next);
            self.full_read = Some(read);
            return Ok(true);
        }
        let revocations = self.verifier.revocations();
        revocations.set_max_token_lifetime(page.max_token_lifetime);
        revocations.replace(read);
        self.next_full_read = Instant::now() + FULL_READ_INTERVAL;
        self.cursor.get_or_insert(page.next);
        Ok(true)
    }

    /// Starts from the beginning if the page is of another incarnation than those before it. From then on the verifier
    /// refuses the tokens of all others.
    fn starts_over(&mut self, page: &RevocationFeed) -> bool {
        let incarnation = &page.incarnation;
        if self.incarnation.as_ref() == Some(incarnation) {
            return false;
        }
        if self.incarnation.is_some() {
            tracing::warn!(
                "the database was restored, or all tokens were revoked: earlier tokens are refused"
            );
        }
        self.cursor = None;
        self.full_read = None;
        self.incarnation = Some(incarnation.clone());
        let revocations = self.verifier.revocations();
        revocations.start_incarnation(incarnation.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use values::{EmailAddress, FromText as _, UserId};

    use super::*;
    use crate::{Claims, Rejection, Subject};

    /// Responds with prepared pages, and records the cursors that were asked for.
    #[derive(Default)]
    struct Pages {
        prepared: Mutex<VecDeque<Option<RevocationFeed>>>,
        cursors: Mutex<Vec<String>>,
    }

    impl Pages {
        fn of(pages: impl IntoIterator<Item = Option<RevocationFeed>>) -> Self {
            Self {
                prepared: Mutex::new(pages.into_iter().collect()),
                cursors: Mutex::default(),
            }
        }

        fn cursors(&self) -> Vec<String> {
            self.cursors.lock().unwrap().clone()
        }
    }

    impl FeedSource for Pages {
        type Error = &'static str;

        async fn read(&self, cursor: Option<&str>) -> Result<RevocationFeed, Self::Error> {
            let cursor = cursor.unwrap_or("none").to_owned();
            self.cursors.lock().unwrap().push(cursor);
            let page = self.prepared.lock().unwrap().pop_front();
            page.flatten().ok_or("unavailable")
        }
    }

    fn page(incarnation: &str, epochs: &[(UserId, i64)], next: &str) -> RevocationFeed {
        let epochs = epochs.iter().map(|(user, epoch)| ((*user).into(), *epoch));
        RevocationFeed {
            epochs: epochs.collect(),
            next: next.to_owned(),
            incarnation: incarnation.to_owned(),
            ..RevocationFeed::default()
        }
    }

    fn first_of_several(page: RevocationFeed) -> RevocationFeed {
        RevocationFeed { more: true, ..page }
    }

    fn reader() -> (FeedReader, Arc<Verifier>) {
        let verifier = Arc::new(Verifier::new("issuer", "audience"));
        (FeedReader::new(Arc::clone(&verifier)), verifier)
    }

    /// The claims of a token that was issued at the moment 1,000.
    fn claims(id: UserId, epoch: i64, incarnation: &str) -> Claims {
        let email = EmailAddress::from_text("ada@example.com").unwrap();
        Claims {
            iss: String::new(),
            aud: String::new(),
            sub: id,
            jti: String::new(),
            iat: 1_000,
            exp: 9_000,
            subject: Subject {
                id,
                email: email.clone(),
                username: email,
                scope: Vec::new(),
                epoch,
                incarnation: incarnation.to_owned(),
                email_verified: true,
                group: None,
                credential: None,
                key_scopes: None,
                service: false,
            },
        }
    }

    fn check(
        verifier: &Verifier,
        id: UserId,
        epoch: i64,
        incarnation: &str,
    ) -> Result<(), Rejection> {
        let claims = claims(id, epoch, incarnation);
        verifier.revocations().check(&claims, 1_000)
    }

    #[tokio::test]
    async fn only_tokens_of_the_current_incarnation_are_accepted() {
        let ((mut reader, verifier), ada) = (reader(), UserId::generate());
        let pages = Pages::of([Some(page("a", &[(ada, 2)], "1"))]);
        reader.poll(&pages).await.unwrap();
        for (epoch, incarnation, expected) in [
            (2, "a", Ok(())),
            (1, "a", Err(Rejection::Revoked)),
            (2, "b", Err(Rejection::Revoked)),
        ] {
            let checked = check(&verifier, ada, epoch, incarnation);
            assert_eq!(checked, expected, "{epoch} {incarnation:?}");
        }
    }

    #[tokio::test]
    async fn a_new_incarnation_revokes_earlier_tokens_and_forgets_their_epochs() {
        let ((mut reader, verifier), ada) = (reader(), UserId::generate());
        let pages = Pages::of([
            Some(page("a", &[(ada, 5)], "9")),
            Some(page("b", &[], "3")),
            Some(page("b", &[(ada, 1)], "3")),
        ]);
        reader.poll(&pages).await.unwrap();
        assert_eq!(check(&verifier, ada, 5, "a"), Ok(()));
        reader.poll(&pages).await.unwrap();
        assert_eq!(pages.cursors(), ["none", "9", "none"]);
        let lost = check(&verifier, ada, 5, "a");
        assert_eq!(lost, Err(Rejection::Revoked));
        assert_eq!(check(&verifier, ada, 1, "b"), Ok(()));
    }

    #[tokio::test]
    async fn until_a_new_incarnation_is_read_its_tokens_wait_and_earlier_ones_are_revoked() {
        let ((mut reader, verifier), ada) = (reader(), UserId::generate());
        let pages = Pages::of([
            Some(page("a", &[], "9")),
            Some(page("b", &[], "3")),
            Some(first_of_several(page("b", &[(ada, 1)], "page 2"))),
            None,
            Some(page("b", &[], "3")),
        ]);
        reader.poll(&pages).await.unwrap();
        assert!(reader.poll(&pages).await.is_err());
        let earlier = check(&verifier, ada, 0, "a");
        assert_eq!(earlier, Err(Rejection::Revoked));
        let waiting = check(&verifier, ada, 1, "b");
        assert_eq!(waiting, Err(Rejection::NotReady));
        reader.poll(&pages).await.unwrap();
        assert_eq!(pages.cursors(), ["none", "9", "none", "page 2", "page 2"]);
        assert_eq!(check(&verifier, ada, 1, "b"), Ok(()));
        let revoked = check(&verifier, ada, 0, "b");
        assert_eq!(revoked, Err(Rejection::Revoked));
    }

    #[tokio::test]
    async fn a_failed_full_read_keeps_cursor_and_epochs_and_delays_no_change() {
        let (mut reader, verifier) = reader();
        let [ada, bob, eve] = std::array::from_fn(|_| UserId::generate());
        let pages = Pages::of([
            Some(page("a", &[(ada, 1)], "1")),
            // Changes, and the first page of everything.
            Some(page("a", &[(bob, 1)], "2")),
            Some(first_of_several(page("a", &[(ada, 1)], "page 2"))),
            // Changes; the second page fails.
            Some(page("a", &[(eve, 1)], "3")),
            None,
            // Changes; the second page is the last one.
            Some(page("a", &[], "4")),
            Some(page("a", &[(bob, 1)], "2")),
            Some(page("a", &[], "5")),
        ]);
        reader.poll(&pages).await.unwrap();
        reader.next_full_read = Instant::now();
        reader.poll(&pages).await.unwrap();
        assert!(reader.poll(&pages).await.is_err());
        // Bob's epoch was raised after the last full read that succeeded.
        for user in [ada, bob, eve] {
            let revoked = check(&verifier, user, 0, "a");
            assert_eq!(revoked, Err(Rejection::Revoked));
        }
        reader.poll(&pages).await.unwrap();
        reader.poll(&pages).await.unwrap();
        let expected = ["none", "1", "none", "2", "page 2", "3", "page 2", "4"];
        assert_eq!(pages.cursors(), expected);
        // Eve's epoch was raised while everything was read.
        for user in [ada, bob, eve] {
            let revoked = check(&verifier, user, 0, "a");
            assert_eq!(revoked, Err(Rejection::Revoked));
        }
    }

    #[tokio::test]
    async fn of_several_epochs_of_a_user_in_a_full_read_the_highest_counts() {
        let ((mut reader, verifier), ada) = (reader(), UserId::generate());
        let pages = Pages::of([
            Some(first_of_several(page("a", &[(ada, 1)], "page 2"))),
            Some(page("a", &[(ada, 2)], "1")),
        ]);
        reader.poll(&pages).await.unwrap();
        let revoked = check(&verifier, ada, 1, "a");
        assert_eq!(revoked, Err(Rejection::Revoked));
        assert_eq!(check(&verifier, ada, 2, "a"), Ok(()));
    }

    #[tokio::test]
    async fn a_full_read_drops_epochs_that_it_does_not_list() {
        let ((mut reader, verifier), ada, bob) = (reader(), UserId::generate(), UserId::generate());
        let pages = Pages::of([
            Some(page("a", &[(ada, 1)], "1")),
            Some(page("a", &[(bob, 1)], "2")),
            Some(page("a", &[], "3")),
            Some(page("a", &[], "3")),
        ]);
        for _ in 0..2 {
            reader.poll(&pages).await.unwrap();
        }
        reader.next_full_read = Instant::now();
        reader.poll(&pages).await.unwrap();
        for user in [ada, bob] {
            assert_eq!(check(&verifier, user, 0, "a"), Ok(()));
        }
    }

    #[tokio::test]
    async fn a_token_older_than_the_longest_lifetime_has_expired() {
        let ((mut reader, verifier), ada) = (reader(), UserId::generate());
        let lasting = |seconds| RevocationFeed {
            max_token_lifetime: Some(seconds),
            ..page("a", &[], "1")
        };
        let claims = claims(ada, 0, "a");
        let check = |now| verifier.revocations().check(&claims, now);
        reader.poll(&Pages::of([Some(lasting(600))])).await.unwrap();
        assert_eq!(check(1_630), Ok(()));
        assert_eq!(check(1_631), Err(Rejection::Expired));
    }
}
