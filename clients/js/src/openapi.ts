// Made by `npm run generate` from the server's openapi.json. Do not edit it.

export type paths = {
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the keys that verify access tokens
         * @description Two keys can be published at once, so that they can be rotated without signing users out.
         */
        get: operations["keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/webhook-keys.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The public keys for `v1a` signatures, as a JWK set. Each key also has the `whpk_…` form of Standard
         *     Webhooks in `whpk`.
         */
        get: operations["webhookKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the audit log of users
         * @description Who did what to which user, newest first. Actions: `first-admin-made`, `user-created`, `user-updated`, `tokens-revoked`,
         *     `verification-requested`, `email-verified`, `signed-in`, `sign-in-refused`, `session-started`, `session-ended`,
         *     `session-replayed`, `key-created`, `key-ended`, `key-confirmed`, `password-changed`, `password-change-refused`,
         *     `password-reset-requested`, `password-reset`, `user-deletion-requested`, `user-deletion-cancelled`, `user-deletion-failed` and
         *     `user-deleted`. A deleted user is shown by a pseudonym. The filters `after` (inclusive) and `before` (exclusive) take a time
         *     in RFC 3339 format.
         *
         *     An API key needs `users:read` and `admin`.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Liveness probe */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The audit log of tasks: who did what to which task, newest first. For administrators.
         * @description Actions: `task-created`, `task-edited`, `task-approved`, `task-rejected`, `task-cancelled`, `webhook-registered`,
         *     `webhook-removed`, `webhook-tested`, `delivery-redelivered`, `delivery-cancelled`, `deliveries-paused`, `deliveries-resumed` and
         *     `user-erased`. A decision's `proof` says whether a token or the approver's secret made it. A deleted user is shown by a
         *     pseudonym. The filters `after` (inclusive) and `before` (exclusive) take a time in RFC 3339 format.
         *
         *     An API key needs `tasks:read` and `admin`.
         */
        get: operations["listTaskAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All deliveries, newest first. For administrators.
         * @description `filter` takes `status` (`pending`, `sent` or `fail`) and, together with `status:pending` or `status:fail`, `host`: the
         *     host of the webhook's URL, without scheme and port. Pending deliveries of a host are sorted by their next attempt, the
         *     latest first. Those that were sent are found among the newest 100,000 that have ended. Among deliveries of the same
         *     second, the order is that of their identifiers.
         *
         *     An API key needs `tasks:read` and `admin`.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels a pending delivery, which then has failed. If it is being sent at this moment, the receiver may get it, but it
         *     is not tried again. For administrators.
         * @description An API key needs `tasks:write` and `admin`.
         */
        post: operations["cancelDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/{id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a delivery again now, whatever its status. A delivery that is being sent at this moment is not
         *     sent a second time. For the task's creator and administrators.
         * @description An API key needs `tasks:write`.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels pending deliveries of a host, at most 1,000 in one call, those first whose next attempt comes first. For
         *     administrators.
         * @description An API key needs `tasks:write` and `admin`.
         */
        post: operations["cancelDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The hosts with deliveries that are pending or have failed, and those that are paused, in alphabetical order. For
         *     administrators.
         * @description An API key needs `tasks:read` and `admin`.
         */
        get: operations["listDeliveryHosts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses the deliveries to a host. They wait until it is resumed, and no attempts are counted. Requests that are under
         *     way end; workers start no others within a second. For administrators.
         * @description An API key needs `tasks:write` and `admin`.
         */
        post: operations["pauseDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends failed deliveries of a host again, at most 1,000 in one call, the oldest first. For administrators.
         * @description An API key needs `tasks:write` and `admin`.
         */
        post: operations["redeliverDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/deliveries/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends the deliveries to a paused host again. For administrators.
         * @description An API key needs `tasks:write` and `admin`.
         */
        post: operations["resumeDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What waits to be delivered: the queue of messages, and the deliveries that have not ended. For administrators.
         * @description An API key needs `tasks:read` and `admin`.
         */
        get: operations["getDeliveryQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/reminders/unsubscribe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The page of the link in reminders with which their recipient turns them off. It changes nothing, because mail
         *     scanners open links.
         */
        get: operations["showUnsubscribePage"];
        put?: never;
        /**
         * Turns reminders off for the recipient of the link, as one click in a mail program does (RFC 8058), or on again. The
         *     body is ignored.
         */
        post: operations["unsubscribe"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The tasks of the user: those that the user created, requested or approves. With a task's secret, that
         *     task.
         * @description Sorted by `created` (descending), `decisionBy`, `title`, `status`, `mtime`, `approver`, `requester` or
         *     `decisionMade`; filtered by `status`,
         *     `approver`, `requester`, `title`, `public` or `text`; `pattern` searches the title, and the filter `text` the title and
         *     the addresses of approver and requester, without regard to accents. If more than 100,000 tasks match, `offset` is at most 10,000 in an order other than `created`.
         *
         *     An API key needs `tasks:read`.
         */
        get: operations["listTasks"];
        put?: never;
        /**
         * Creates a task, with webhooks if the body has some. This response is the only one with both secrets.
         * @description A request with an `Idempotency-Key` can be repeated: within 24 hours the same user gets the same answer for the same
         *     key and body, and nothing is created again.
         *
         *     An API key needs `tasks:write`.
         */
        post: operations["createTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks-count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The number of tasks in the list, regardless of `limit`.
         * @description An API key needs `tasks:read`.
         */
        get: operations["countTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One task.
         * @description With `wait`, the response to a pending task comes as soon as the task is no longer pending, and after that many seconds
         *     at the latest, with the task as it is then. The rights of the caller are judged again.
         *
         *     An API key needs `tasks:read`.
         */
        get: operations["getTask"];
        /**
         * Changes a pending task, but not its status. The approver may change only `approver`, to hand the
         *     decision over; a requester cannot become the approver. A new approver or requester gets a new secret, and
         *     the old one stops working. The response has it only for the task's creator and administrators.
         * @description An API key needs `tasks:write`.
         */
        put: operations["editTask"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Approves a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds.
         * @description An API key needs `tasks:decide`.
         */
        put: operations["approveTask"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who would hear of it if the caller withdrew the task now. For those who may withdraw it.
         * @description An API key needs `tasks:read`.
         */
        get: operations["previewCancel"];
        put?: never;
        /**
         * Withdraws a pending task, so that there is nothing to decide any more. For its creator, its requester and administrators.
         *     The task's status becomes `cancelled`, which is final.
         * @description Webhooks whose `events` have `cancelled` are called; others hear nothing. An approver who was asked by mail gets a mail
         *     that says so, and no reminders.
         *
         *     An API key needs `tasks:write`.
         */
        post: operations["cancelTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The deliveries of a task's decision, one for each webhook, and of due dates that have passed. For the task's creator and administrators.
         * @description An API key needs `tasks:read`.
         */
        get: operations["listTaskDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Rejects a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds. A task with
         *     `commentRequired` is rejected only with a `comment`.
         * @description An API key needs `tasks:decide`.
         */
        put: operations["rejectTask"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/tasks/{id}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The webhooks of a task, oldest first. The task's creator, the user who registered a webhook and administrators see its
         *     whole URL, others the scheme and the host.
         * @description An API key needs `tasks:read`.
         */
        get: operations["listTaskWebhooks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Registers a webhook for a pending task. A task has at most 20, and at most 10 of approvers and requesters. When the
         *     task is decided, it is sent to the URL by POST, signed as Standard Webhooks describes, until a 2xx response. Under
         *     `/plugins/appmixer/utils/tasks` the task may be decided already: then it is sent at once.
         * @description A webhook whose `events` have `due` is also called when `decisionBy` passes while the task is pending. The body is the
         *     task with `status: "due"`, and the call has its own `webhook-id`. The task stays pending and can still be decided.
         *     This happens once for each date: if `decisionBy` is later changed to a later date, it happens again. A webhook that is
         *     registered when the date has passed is called for it at once.
         *
         *     A webhook whose `events` have `cancelled` is called when the task is withdrawn, with `status: "cancelled"` and the reason
         *     as `comment`. Others then hear nothing.
         *
         *     `include`, `headers`, `method`, `body` and `success` make calls that flow engines take as they are. `headers`, `method` and
         *     `body` to an address that is not public are only for origins that the operator lists in `WEBHOOK_ENGINE_ORIGINS`.
         *
         *     An API key needs `tasks:write`.
         */
        post: operations["registerWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Deletes a webhook. Prefer `DELETE`, which does the same.
         * @description An API key needs `tasks:write`.
         */
        get: operations["deleteWebhookByGet"];
        put?: never;
        post?: never;
        /**
         * Deletes a webhook with its delivery. For the user who registered it, the task's creator and
         *     administrators.
         * @description An API key needs `tasks:write`.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-task/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tries a webhook: its receiver gets one call as at a decision, signed, with the headers, the method and the body of the
         *     registration, with the header `webhook-test: true` and with `status: "test"` for the task, which is no decision. The
         *     response says what the receiver answered, without the answer's body. It is not repeated, and changes nothing else.
         * @description An engine that looks at neither acts as at a decision: a paused flow goes on. For the user who registered the webhook,
         *     the task's creator and administrators: 10 within a minute for each, 60 for all together.
         *
         *     An API key needs `tasks:write`.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readiness probe
         * @description The gateway is not ready until `keys` is `ok`. A service that is unavailable, or a stale revocation feed, is reported but does not make the gateway unready. The result is at most a second old. Requests count towards the rate limit of the client; probes should use the internal port (`METRICS_ADDRESS`), which has none.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in and stay signed in
         * @description For the pages of this server; programs use `POST /user/auth`, whose rules apply. The response sets a cookie that only the
         *     paths below `/session` get, and its token is valid for five minutes. A user has at most `SESSIONS_PER_USER` sessions:
         *     another one ends the one that was not used for longest.
         */
        post: operations["startSession"];
        /**
         * Sign out
         * @description For the pages of this server. Ends the session of the cookie, if there is one, and removes the cookie. Tokens of the session
         *     are refused within a second.
         */
        delete: operations["endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange your session for a token
         * @description For the pages of this server. The token is valid for five minutes, and ends with the session. The response replaces the
         *     cookie: a value that was replaced and comes back ends the session, unless `attempt` says that the response to its exchange
         *     was lost.
         */
        post: operations["exchangeSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get user information
         * @description The current state of the token's user.
         *
         *     An API key needs `users:read`.
         */
        get: operations["currentUser"];
        put?: never;
        /**
         * Create a user
         * @description Open to anyone by default. If `API_USER_CREATE_SCOPE` is set, a token with one of its scopes is
         *     required. The response signs the new user in. With an administrator's token the body may also carry
         *     `scope`, `isActive`, `plan`, `vendor` and `metadata`, under the rules of `PUT /users/{userId}`; for other
         *     callers these fields are ignored. With `"service": true` it is a service account: it has no password, no sign-in and no codes,
         *     and acts only with API keys that administrators make for it; the response then has no `token`. While `EMAIL_VERIFICATION` is `required`, only an administrator can give a
         *     `username` that differs from `email`, unless `SIGN_UP_USERNAMES` is `any`.
         *
         *     An API key needs `users:write`.
         */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/auth": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in
         * @description Takes a username or an e-mail address, in any case. An unknown user and a wrong password have the same
         *     response. After the 5th consecutive failure from one client address, and after the 50th from anywhere,
         *     each further attempt must wait, even with the correct password: one second, doubling up to five minutes.
         *     Addresses from which the user signed in before are exempt from the count of failures from anywhere.
         */
        post: operations["signIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/change-password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change your password
         * @description Revokes all tokens of the user, including the one in use, and returns a new one. API keys go on. A wrong `oldPassword` counts
         *     like a failed sign-in: after several in a row, each further attempt must wait.
         */
        post: operations["changePassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/forgot-password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request a code for a forgotten password
         * @description Sends a code through every configured channel. The response is the same for an unknown address, for which
         *     nothing is sent. The codes of the last three requests are valid, until one of them is used or the password or
         *     the address changes. Requests are limited for each e-mail address and for each client address
         *     (`FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`); for a client address from which the user signed in before,
         *     the first is three times as high.
         */
        post: operations["forgotPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/forgot-password/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a forgotten password
         * @description Takes a code, which can be used once, within an hour (`FORGOT_PASSWORD_TTL`). Revokes all other codes and all tokens of the user,
         *     ends the user's API keys, and ends the back-off after failed sign-ins.
         */
        post: operations["resetForgottenPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get your API keys
         * @description The newest first, without their texts.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Make an API key
         * @description A key with which programs act for you: send it in place of a token. The response tells its text, which no later one does. A
         *     user has at most `KEYS_PER_USER` keys. A change of your password does not end your keys, but setting a new one by a code does.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End an API key
         * @description Ends a key of yours. It is refused within a second.
         */
        delete: operations["endKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/reset-password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a user's password
         * @description Revokes all tokens of the user, ends the user's API keys, and ends the back-off after failed sign-ins.
         */
        post: operations["resetPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the browsers in which you stay signed in
         * @description The one that was used last comes first. Tokens that were issued for a password alone are in no list.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/sessions/{sessionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Sign a browser out
         * @description Ends a session of yours. Its tokens are refused within a second.
         */
        delete: operations["endUserSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/verify-email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm an e-mail address
         * @description Takes the code that was sent to it: after sign-up or a change of the address if `EMAIL_VERIFICATION` is `required`,
         *     or on request. With the code comes what shows that the caller has the account, too: the account's token, its
         *     `password`, or a `newPassword`, which is set and signs out all who use the account. So no one confirms an account
         *     that another person made with the address. A wrong `password` counts like a failed sign-in. The token is read only
         *     without a password. The user's next token says that the address is confirmed.
         */
        post: operations["verifyEmail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/verify-email/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request another code to confirm your e-mail address
         * @description Sends a code to the user's address through every configured channel. Earlier codes stay valid. It also works while
         *     `EMAIL_VERIFICATION` is `off`, so that users can confirm their addresses before it is required. Requests are limited
         *     for each user and for each client address (`FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`).
         */
        post: operations["resendVerificationCode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get all users
         * @description A page of users. `sort` takes `created` (descending by default), `mtime`, `username`, `email`, `plan`,
         *     `isActive` and `lastSignIn`; ties are broken by id, null comes last, text sorts
         *     case-insensitively. `filter` takes `username`, `email`, `scope`, `plan`, `vendor` and `isActive`; `scope` and `vendor` match membership.
         *     `pattern` is a substring of the username. With a pattern and more than 100,000 users, `offset` is
         *     at most 1,000, unless `sort` is `username`.
         *
         *     An API key needs `users:read` and `admin`.
         */
        get: operations["listUsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user by id
         * @description An API key needs `users:read` and `admin`.
         */
        get: operations["getUser"];
        /**
         * Update a user
         * @description Changing the e-mail address, username, scope, password or `isActive` revokes the user's tokens; sending
         *     the same value does not. A new password and deactivating end the user's API keys, too. Unknown fields are ignored, so a
         *     whole user can be sent back.
         *
         *     An API key needs `users:write` and `admin`.
         */
        put: operations["updateUser"];
        post?: never;
        /**
         * Delete a user
         * @description Deactivates the account and revokes its tokens at once. A worker does the rest, which takes a while. While
         *     the deletion is in progress, repeating the request returns the same ticket.
         *
         *     An API key needs `users:write` and `admin`.
         */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}/delete-status/{ticket}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the status of a deletion
         * @description Available for 30 days after the deletion has ended (`DELETE_TICKET_RETENTION`), although the user no
         *     longer exists.
         *
         *     An API key needs `users:read` and `admin`.
         */
        get: operations["getDeletionStatus"];
        put?: never;
        post?: never;
        /**
         * Cancel a deletion
         * @description The worker stops before its next step. What was deleted stays deleted, and the account stays inactive
         *     until an administrator reactivates it.
         *
         *     An API key needs `users:write` and `admin`.
         */
        delete: operations["cancelDeletion"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user's API keys
         * @description The newest first, without their texts.
         */
        get: operations["listUserKeys"];
        put?: never;
        /**
         * Make an API key for a user
         * @description For a service account, or for a person, who is mailed and whose key decides nothing: `tasks:decide` is refused.
         */
        post: operations["createUserKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a user's API key
         * @description It is refused within a second.
         */
        delete: operations["endUserKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}/keys/{keyId}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm a user's API key
         * @description Turns a key on again that is off since the database was restored.
         */
        post: operations["confirmUserKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{userId}/revoke-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a user's tokens
         * @description Every access token of the user is refused within a second, browsers that stay signed in are signed out, and a person's API
         *     keys end. The user can sign in again. The keys of a service account go on: end them one by one, or deactivate it.
         */
        post: operations["revokeTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the number of users
         * @description An API key needs `users:read` and `admin`.
         */
        get: operations["countUsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/deletions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get all deletions
         * @description Newest first, all or those of one status.
         *
         *     An API key needs `users:read` and `admin`.
         */
        get: operations["listDeletions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/deletions/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start failed deletions again
         * @description Each continues at the step that failed, under its old ticket, at most 1,000 in one call. Deletions of users who were
         *     reactivated after the failure are left as they are, and so are those that would skip the flow engine's steps: delete
         *     these users again.
         *
         *     An API key needs `users:write` and `admin`.
         */
        post: operations["retryDeletions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the API keys of all users
         * @description The newest first. With `confirmed=false` only those that are off since the database was restored.
         */
        get: operations["listAllKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/keys/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm all API keys
         * @description Turns the keys of all users on again that are off since the database was restored. A key that was ended after the backup is
         *     among them: look at `GET /users/keys?confirmed=false` first.
         */
        post: operations["confirmAllKeys"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the queues
         * @description The deletions and notifications that wait for workers, and the queues of messages about them.
         *
         *     An API key needs `users:read` and `admin`.
         */
        get: operations["getUserQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
};
export type webhooks = Record<string, never>;
export type components = {
    schemas: {
        AccountProof: {
            /**
             * Format: password
             * @description A new password for the account, under the rules of new passwords. It signs out all who use the account.
             */
            newPassword?: string | null;
            /**
             * Format: password
             * @description The account's password, if there is neither a token nor `newPassword`.
             */
            password?: string | null;
        };
        /** @description One attempt of a delivery. The database has it in this form. */
        Attempt: {
            /**
             * Format: date-time
             * @description When it started.
             */
            at: string;
            /**
             * Format: int32
             * @description How long it took, in milliseconds.
             */
            durationMs: number;
            /** @description Why the attempt failed; null if the response alone says so. */
            error: string | null;
            /** @description The first KiB of the response's body. */
            response: string | null;
            /**
             * Format: int32
             * @description The response's status code; null without a response.
             */
            statusCode: number | null;
        };
        /** @description A change of a user or a task. It holds identifiers and the names of changed fields, never their values. */
        AuditEntry: {
            /** @description The kind of change. */
            action: string;
            /** @description The identifier of the user who made the change; null if it was not a known user. */
            actor: string | null;
            /**
             * @description `user`, `admin` (a user with a token that has that scope), `service` (a process of the system),
             *     `approver-secret` or `requester-secret` (a caller with that secret of the task), or `anonymous`.
             */
            actorKind: string;
            /**
             * Format: date-time
             * @description When the change was made.
             */
            at: string;
            /**
             * @description The client's address; null for work inside the system, and once the user whose address it was is
             *     deleted.
             */
            clientAddress: string | null;
            /**
             * @description Further details, such as `fields`, the names of the fields that changed, of a decision `version` and
             *     `contentSha256`, the hash of what was decided on, and `key`, the API key that acted for the user.
             */
            detail: Record<string, never> | null;
            /**
             * Format: int64
             * @description The number of the entry.
             */
            id: number;
            /**
             * @description How the actor was authenticated: `token`, `password`, `reset-code`, `verification-code`,
             *     `task-secret` or `service-token`; null for an unauthenticated caller.
             */
            proof: string | null;
            /** @description The `X-Request-Id` of the response, which is also in the log lines of the request. */
            requestId: string;
            /** @description The identifier of the user or task that was changed. */
            subject: string | null;
            /** @description `user` or `task`; null if the user does not exist. */
            subjectKind: string | null;
        };
        /** @description The result of cancelling the deliveries of a host. */
        CancelledDeliveries: {
            /** @description How many were cancelled. */
            cancelled: number;
            /**
             * Format: int64
             * @description How many pending ones are left, counted up to 100,000: then call again.
             */
            remaining: number;
        };
        /** @description Who hears of it when a task is withdrawn. */
        CancelPreview: {
            /**
             * Format: int64
             * @description How many hear nothing, so that flows which wait for them wait for ever.
             */
            webhooksNotTold: number;
            /**
             * Format: int64
             * @description How many of its webhooks are called: those whose `events` have `cancelled`.
             */
            webhooksTold: number;
        };
        /** @description Why a task is withdrawn, and the secret of its requester if it is withdrawn without a token. */
        CancelRequest: {
            /** @description Why: at most 2,000 characters, without the whitespace around them. `include=comment` shows it. */
            reason?: string | null;
            /** @description The requester's secret. It may also be sent as `?secret=` or in the header `X-Task-Secret`. */
            secret?: string | null;
            /** @description The version of the task that is withdrawn, like `If-Match`. Another one is `409 task-changed`. */
            version?: number | null;
        };
        ChangePasswordRequest: {
            /**
             * Format: password
             * @description At least 5 characters (the operator can require more), at most 72 bytes, both in Unicode's normal form C.
             */
            newPassword: string;
            /** Format: password */
            oldPassword: string;
        };
        /** @description A new token that replaces the revoked ones. */
        ChangePasswordResponse: {
            token: string;
        };
        /** @description How many keys were confirmed. */
        ConfirmedResponse: {
            confirmed: number;
        };
        /** @description How many rows a list has without `limit`. */
        CountResponse: {
            /**
             * Format: int64
             * @description The number of rows.
             */
            count: number;
        };
        /** @description A user that was created: signed in, or alone if it is a service account or an API key created it. */
        CreatedResponse: components["schemas"]["SignInResponse"] | components["schemas"]["CreatedUser"];
        /** @description A user who is not signed in. */
        CreatedUser: {
            user: components["schemas"]["SignInResponseUser"];
        };
        /** @description The body of the creation of a key. */
        CreateKeyRequest: {
            /**
             * Format: date-time
             * @description When it ends by itself; never by default.
             */
            expires?: string | null;
            /**
             * Format: visible-line
             * @description What you call it: one line, with at least one character that can be seen.
             */
            name: string;
            scopes?: ("tasks:read" | "tasks:write" | "tasks:decide" | "users:read" | "users:write" | "admin")[] | null;
        };
        /** @description A new task. */
        CreateTaskRequest: components["schemas"]["NewTaskFields"] & {
            /** @description Webhooks to register with the task, as `POST /people-task/webhooks` does. The response then has `webhooks`, too. */
            webhooks?: components["schemas"]["NewWebhookFields"][];
        };
        /** @description The body of the creation of a user. */
        CreateUserRequest: components["schemas"]["NewUserNames"] & components["schemas"]["PersonOrService"] & components["schemas"]["NewUserAdminFields"];
        /**
         * @description What a decision was authenticated with.
         * @enum {string}
         */
        Credential: "token" | "key" | "task-secret";
        /** @description A user's own account. */
        CurrentUserResponse: {
            email: string;
            /** @description 24 lower-case hexadecimal digits. */
            id: string;
            isActive: boolean;
            plan: string;
            scope: string[];
            username: string;
        };
        /** @description Where people see their tasks. */
        DashboardResponse: {
            /** @description The page's URL. */
            dashboardUrl: string;
        };
        /** @description How a task was decided. */
        DecidedVia: {
            /** @description The API key. Absent if it was none. */
            key?: string;
            /** @description Whether an administrator decided instead of those who should. Absent if not. */
            override?: boolean;
            /** @description What the decision was authenticated with. */
            type: components["schemas"]["Credential"];
        };
        /**
         * @description Who decides a task, if not everyone who may by default.
         * @enum {string}
         */
        Deciders: "approver" | "signed-in";
        /** @description A comment, and the secret of the task's approver for a decision without a token. */
        DecisionRequest: {
            /**
             * @description What to say about the decision: at most 2,000 characters, without the whitespace around them. A rejection needs
             *     one if the task has `commentRequired`.
             */
            comment?: string | null;
            /** @description The approver's secret. It may also be sent as `?secret=` or in the header `X-Task-Secret`. */
            secret?: string | null;
            /** @description The version of the task that is decided on, like `If-Match`. Another one is `409 task-changed`. */
            version?: number | null;
        };
        /** @description A deletion in the list of all deletions. */
        Deletion: components["schemas"]["DeletionStatus"] & {
            /** Format: date-time */
            created: string;
            /**
             * Format: int64
             * @description While the deletion is in progress, and once there are some: how many of the user's tasks it has deleted.
             */
            deletedTasks?: number;
            /**
             * Format: date-time
             * @description Null while the deletion is in progress.
             */
            finished: string | null;
            ticket: string;
            userId: string;
        };
        /** @description The progress of a deletion. */
        DeletionStatus: {
            /** @description The problem that ended a failed deletion: which step failed, and why. */
            failure?: Record<string, never>;
            /** @description `in-progress`, `completed`, `failed` or `cancelled`. */
            status: string;
            /**
             * Format: int32
             * @description The number of finished steps. It never decreases.
             */
            stepsDone: number;
            /**
             * Format: int32
             * @description The number of all steps. It never changes.
             */
            stepsTotal: number;
        };
        /** @description The ticket of a deletion. */
        DeletionTicket: {
            /** @description 64 hexadecimal digits. */
            ticket: string;
        };
        /** @description The deliveries that have not ended. */
        DeliveryBacklog: {
            /**
             * Format: int64
             * @description How many should be under way now.
             */
            due: number;
            /**
             * Format: double
             * @description How long the oldest of them has waited, in seconds.
             */
            oldestDueSeconds: number;
            /**
             * Format: int64
             * @description How many are not tried any more, because they ended workers, until they are sent again.
             */
            parked: number;
            /**
             * Format: int64
             * @description How many wait for a paused host, counted up to 100,000.
             */
            paused: number;
            /**
             * Format: int64
             * @description How many hosts are paused.
             */
            pausedHosts: number;
            /**
             * Format: int64
             * @description How many deliveries are pending, counted up to 100,000.
             */
            pending: number;
        };
        /** @description A host with deliveries. */
        DeliveryHost: {
            /**
             * Format: int64
             * @description How many deliveries have failed and were not sent again, counted up to 1,000.
             */
            failed: number;
            /** @description The host of the webhooks' URLs, without scheme and port. */
            host: string;
            /**
             * Format: date-time
             * @description When the next attempt of a pending delivery is due; null if there is none.
             */
            nextAttempt: string | null;
            /**
             * Format: date-time
             * @description Since when its deliveries are paused; null if they are not.
             */
            paused: string | null;
            /**
             * Format: int64
             * @description How many deliveries are pending, counted up to 1,000.
             */
            pending: number;
            /**
             * Format: int64
             * @description How many of them had failed attempts.
             */
            retrying: number;
        };
        /** @description What waits to be delivered. */
        DeliveryQueues: {
            /** @description The deliveries that have not ended. */
            deliveries: components["schemas"]["DeliveryBacklog"];
            /** @description The queues of messages. The work itself is in the database. */
            queues: components["schemas"]["Queue"][];
        };
        /** @description A decision, or a due date that has passed, on its way to one webhook. */
        DeliveryResponse: {
            /** @description The newest 100 attempts, oldest first. */
            attempts: components["schemas"]["Attempt"][];
            /**
             * Format: date-time
             * @description When the task was decided or the due date passed, or the webhook was registered if that was later.
             */
            created: string;
            /** @description The delivery's identifier: the `webhook-id` header of every attempt. */
            id: string;
            /**
             * Format: date-time
             * @description When the next attempt is due; null if there is none.
             */
            nextAttempt: string | null;
            /** @description `pending` until the last attempt ends, then `sent` or `fail`. */
            status: components["schemas"]["DeliveryStatus"];
            /** @description It waits, because the user who registered the webhook has no right to the task now. Absent otherwise. */
            suspended?: boolean;
            /** @description The decision; `due` if the due date has passed. */
            taskStatus: components["schemas"]["WebhookEvent"];
            /** @description The URL that is called. */
            url: string;
            /** @description The webhook's identifier. */
            webhookId: string;
        };
        /**
         * @description The state of a delivery and of its webhook.
         * @enum {string}
         */
        DeliveryStatus: "pending" | "sent" | "fail";
        /** @description Changes to a task. An absent field stays as it is, and so does a field with its current value. */
        EditTaskRequest: {
            /** @description The new approver. The old approver's secret stops working. */
            approver?: string | null;
            /** @description Whether a rejection needs a comment. */
            commentRequired?: boolean | null;
            /** @description Whether the page asks for a second press before it sends a decision. */
            confirmationRequired?: boolean | null;
            /** @description The date by which a decision is needed; null for none. */
            decisionBy?: string | null;
            /** @description The details. */
            description?: string | null;
            /** @description What to keep with the task instead of what was kept; null for nothing. For the task's creator and administrators. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Whether every signed-in user may read the task. */
            public?: boolean | null;
            /**
             * @description With `true`, the approver gets a new secret and the old one stops working, as with a new approver. For the task's creator
             *     and administrators, to whom the response shows it.
             */
            renewApproverSecret?: boolean | null;
            /** @description The new requester. The old requester's secret stops working. */
            requester?: string | null;
            /** @description What the approver decides about. */
            title?: string | null;
            /** @description The version that the changes are made to, like `If-Match`. Another one is `409 task-changed`. */
            version?: number | null;
        };
        /**
         * Format: email
         * @description An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed.
         */
        EmailAddress: string;
        /** @description An empty object. */
        EmptyResponse: Record<string, never>;
        /** @description The body of an exchange. */
        ExchangeRequest: {
            /**
             * @description A random text of 32 to 128 characters that names this exchange. A browser that got no response repeats it, together
             *     with its cookie.
             */
            attempt?: string | null;
        };
        /** @description An invalid field. */
        FieldError: {
            /** @description A stable code in kebab case. */
            code: string;
            /** @description The field's name in the body, the query or the path. */
            field: string;
            /** @description What is expected. */
            message: string;
        };
        /** @description The address of the request and its time. The same for known and unknown addresses. */
        ForgotPasswordContent: {
            /**
             * Format: date-time
             * @description RFC 3339 in UTC with milliseconds.
             */
            created: string;
            email: string;
        };
        ForgotPasswordDestination: {
            componentId: string;
            inputPort: string;
        };
        ForgotPasswordMessage: {
            content: components["schemas"]["ForgotPasswordContent"];
            originalContent: components["schemas"]["ForgotPasswordContent"];
            properties: components["schemas"]["ForgotPasswordProperties"];
            /** @description The output of each port of each component. */
            scope: {
                [key: string]: {
                    [key: string]: components["schemas"]["ForgotPasswordContent"];
                };
            };
        };
        ForgotPasswordMessages: {
            in: components["schemas"]["ForgotPasswordMessage"][];
        };
        ForgotPasswordProperties: {
            componentHeaders: Record<string, never>;
            contentEncoding: string;
            contentType: string;
            /** @description The request id. */
            correlationId: string;
            correlationInPort?: string | null;
            destination: components["schemas"]["ForgotPasswordDestination"];
            flowId: string;
            /**
             * Format: int64
             * @description The time of the request in milliseconds since 1970.
             */
            flowRunId: number;
            gridInstanceId?: string | null;
            /** @description 24 lower-case hexadecimal digits. */
            messageId: string;
            sender: components["schemas"]["ForgotPasswordSender"];
        };
        ForgotPasswordRequest: {
            /**
             * Format: email
             * @description An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed.
             */
            email: string;
        };
        /** @description The notification that was queued for one channel. */
        ForgotPasswordResponse: {
            /** @description The channel: `webhook`, `mail` or `log`. */
            componentId: string;
            /**
             * Format: date-time
             * @description RFC 3339 in UTC with milliseconds.
             */
            created: string;
            /** @description An error object as a JSON string. Always empty. */
            err: string;
            flowId: string;
            /** @description 24 lower-case hexadecimal digits. */
            messageId: string;
            messages: components["schemas"]["ForgotPasswordMessages"];
        };
        ForgotPasswordSender: {
            componentId: string;
            outputPort: string;
            type: string;
        };
        Host: string;
        /** @description A host whose deliveries are changed. */
        HostOfDeliveries: {
            /** @description The host of the webhooks' URLs, without scheme and port. */
            host: components["schemas"]["Host"];
        };
        /** @description The jobs of one kind that have not ended. */
        JobBacklog: {
            /** @description `deletions` or `notifications`. */
            name: string;
            /**
             * Format: int64
             * @description How many jobs have not ended.
             */
            open: number;
            /**
             * Format: double
             * @description How long the oldest due job has waited for a worker, in seconds.
             */
            overdueSeconds: number;
        };
        /** @description An API key. */
        Key: {
            /** @description `false` if the key is off, because the database was restored and no administrator has confirmed the key since. */
            confirmed?: boolean;
            /**
             * Format: date-time
             * @description RFC 3339 in UTC with milliseconds.
             */
            created: string;
            /**
             * Format: date-time
             * @description When it ends by itself; null if never.
             */
            expires: string | null;
            /** @description 24 lower-case hexadecimal digits. */
            id: string;
            /**
             * Format: date-time
             * @description The minute in which it was used last; null before its first use.
             */
            lastUsed: string | null;
            name: string;
            scopes: string[];
        };
        /** @description A JSON Web Key set (RFC 7517): the keys that verify access tokens, the current one first. */
        KeySet: {
            keys: Record<string, never>[];
        };
        /** @description A task without the fields that `projection` left out. */
        ListedTaskResponse: {
            /** @description E-mail address of the person who decides. */
            approver?: string;
            /**
             * @description Gives the approver access to the task without a token. Present at creation, and when the creator or an
             *     administrator replaced the approver.
             */
            approverSecret?: string;
            /** @description Whether the caller may decide the task while it is pending. Present with `include`. */
            canDecide?: boolean;
            /**
             * @description What that person wrote about it; null if nothing. Present with `include`. The body of a webhook call
             *     has it if it is not null.
             */
            comment?: string | null;
            /** @description Whether a rejection needs a comment. Present with `include`. */
            commentRequired?: boolean;
            /** @description Whether the page asks for a second press before it sends a decision. Present with `include`. */
            confirmationRequired?: boolean;
            /**
             * Format: date-time
             * @description When the task was created. Present with `include`.
             */
            created?: string;
            /**
             * @description E-mail address of the person who decided or withdrew the task: the signed-in user's, or that of the person whose
             *     secret was used. Null before, for an address that was not confirmed, and for decisions of early versions. Present with `include`.
             */
            decidedBy?: string | null;
            decidedVia?: components["schemas"]["DecidedVia"] | null;
            deciders?: components["schemas"]["Deciders"] | null;
            /** @description The date by which a decision is needed, `YYYY-MM-DD HH:MM:SS` in UTC; null if there is none. */
            decisionBy?: string | null;
            /**
             * Format: date-time
             * @description When the task was decided or withdrawn; null before. Present with `include`.
             */
            decisionMade?: string | null;
            /** @description The details. */
            description?: string;
            /** @description The task's identifier: 24 lower-case hexadecimal digits. */
            id?: string;
            /** @description Whether the caller is the approver, by e-mail address or by the approver's secret. Present with `include`. */
            isApprover?: boolean;
            /** @description Whether the caller is the requester, by e-mail address or by the requester's secret. Present with `include`. */
            isRequester?: boolean;
            /** @description What the task's creator keeps with it; null if nothing. Present with `include`, for the creator and administrators. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: date-time
             * @description When the task last changed. Present with `include`.
             */
            mtime?: string;
            /** @description Whether every signed-in user may read the task. Present at creation, or with `include`. */
            public?: boolean;
            /** @description E-mail address of the person who needs the decision. */
            requester?: string;
            /**
             * @description Gives the requester access to the task without a token. Present at creation, and when the creator or an
             *     administrator replaced the requester.
             */
            requesterSecret?: string;
            /** @description Whether who created or requested the task may decide it. Present with `include`. */
            selfApproval?: boolean;
            /** @description Whether and how the task was decided, or whether it was withdrawn. */
            status?: components["schemas"]["TaskStatus"];
            /** @description The same as `id`; only under `/plugins/appmixer/utils/tasks`. */
            taskId?: string;
            /** @description What the approver decides about. */
            title?: string;
            /**
             * Format: int64
             * @description Counts the changes of what is decided on: `title`, `description`, `decisionBy`, `approver` and `requester`. It begins
             *     at 1, and `ETag` has the same number. Present with `include`.
             */
            version?: number;
        };
        /** @description A key that was just made, with its text, which is told only now. */
        NewKey: components["schemas"]["Key"] & {
            /** @description The key itself. Send it as `Authorization: Bearer csk_…`. */
            key: string;
        };
        /** @description The fields of a new task. */
        NewTaskFields: {
            /** @description E-mail address of the person who decides. */
            approver: components["schemas"]["EmailAddress"];
            /**
             * @description Whether a rejection needs a comment.
             * @default false
             */
            commentRequired?: boolean | null;
            /**
             * @description Whether the page asks for a second press before it sends a decision. Calls of the API decide at once.
             * @default false
             */
            confirmationRequired?: boolean | null;
            /**
             * @description Who decides the task, if not also its creator and administrators: with `approver` only the approver, signed in or by
             *     the link that is mailed to them; with `signed-in` only the approver, signed in. Administrators may still decide with
             *     `?override=true`, which is recorded. The approver's secret in the response then only opens the task, and only the
             *     approver may name another one. The default is a setting.
             */
            deciders?: ("approver" | "signed-in") | null;
            /**
             * @description The date by which a decision is needed: `YYYY-MM-DD HH:MM:SS` (UTC) or RFC 3339. The task can still
             *     be decided after it.
             */
            decisionBy?: string | null;
            /** @description The details; empty by default. */
            description?: string | null;
            /** @description The language of that mail, `en` or `de`. The default is a setting. */
            language?: ("en" | "de") | null;
            /**
             * @description What to keep with the task, such as identifiers of the flow: at most 4 KiB as JSON. `include=metadata` shows it to
             *     the task's creator and to administrators.
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Whether the approver and the requester get mail about the task. The default is a setting. */
            notify?: boolean | null;
            /**
             * @description Whether every signed-in user may read the task.
             * @default false
             */
            public?: boolean | null;
            /** @description E-mail address of the person who needs the decision. */
            requester: components["schemas"]["EmailAddress"];
            /**
             * @description With `false`, who created or requested the task does not decide it, and the approver's secret in the response only
             *     opens it.
             * @default true
             */
            selfApproval?: boolean | null;
            /** @description What the approver decides about, with at least one character that can be seen; whitespace around it is dropped. */
            title: components["schemas"]["TaskTitle"];
        };
        /** @description A new task, with its webhooks if the request had some. */
        NewTaskResponse: components["schemas"]["TaskResponse"] & {
            /** @description The webhooks, in the order of the request, if it had some. */
            webhooks?: components["schemas"]["WebhookResponse"][];
        };
        /**
         * @description The fields of a new user that only an administrator's token sets. For other callers they are ignored and the
         *     defaults apply, as they do for a field that is absent.
         */
        NewUserAdminFields: {
            /** @description True by default. The token of an inactive user is already revoked. */
            isActive?: boolean | null;
            /** @description `{}` by default. */
            metadata?: Record<string, never> | null;
            /** @description `DEFAULT_USER_PLAN` by default. */
            plan?: string | null;
            /** @description `["user"]` by default. */
            scope?: string[] | null;
            /** @description `DEFAULT_USER_VENDOR` by default; null for none. */
            vendor?: (string | string[]) | null;
        };
        /** @description At least one of `username` and `email` is required; each defaults to the other. While `EMAIL_VERIFICATION` is `required`, both must be the same without an administrator's token (`SIGN_UP_USERNAMES`). */
        NewUserNames: {
            email?: string | null;
            /**
             * Format: email
             * @description An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed.
             */
            username: string;
        } | {
            /**
             * Format: email
             * @description An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed.
             */
            email: string;
            username?: string | null;
        };
        /** @description The fields of a new webhook. */
        NewWebhookFields: {
            /**
             * @description The body of the calls, in place of the task: any JSON of at most 16 KiB. A string that is exactly `{{name}}` becomes
             *     that value as JSON, and `{{name}}` inside of a longer string its text (nothing for null). Names are the fields of a
             *     task, those that `include` can name, and `metadata.` with a key. Nothing else is evaluated.
             */
            body?: (Record<string, never> | unknown[] | string | number | boolean) | null;
            /**
             * @description What to call it for. By default that is the decision, `approved` or `rejected`; under
             *     `/plugins/appmixer/utils/tasks` also `due`, which happens when `decisionBy` passes while the task is pending. Of
             *     `cancelled`, which happens when the task is withdrawn, only webhooks hear that name it.
             */
            events?: ("approved" | "rejected" | "due" | "cancelled")[] | null;
            /**
             * @description Headers of the calls: at most 10, with at most 4 KiB of names and values together. Responses have their names only.
             *     Names that HTTP, the signature or the client sets are refused. They go over https, or to an origin that the
             *     operator lists in `WEBHOOK_ENGINE_ORIGINS`. They need `WEBHOOK_HEADER_KEYS` of the operator.
             */
            headers?: {
                [key: string]: string;
            } | null;
            /** @description Fields that the body has beside the usual ones. `metadata` is for the task's creator and administrators. */
            include?: ("public" | "created" | "mtime" | "decisionMade" | "decidedBy" | "comment" | "commentRequired" | "confirmationRequired" | "metadata" | "version" | "deciders" | "selfApproval" | "decidedVia")[] | null;
            /** @description The method of the calls, by default `POST`. */
            method?: ("POST" | "PUT" | "PATCH") | null;
            /**
             * @description A signing secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. With it, calls also
             *     carry a `v1` signature, which is the only one of calls with a `body` of their own. It is never returned.
             */
            secret?: string | null;
            /**
             * @description When a call has succeeded, in place of any status of 2xx: `status` lists the statuses; with `pointer`, the answer must
             *     be JSON of at most 64 KiB that has this place (an empty string is the whole answer), and with `value` exactly that
             *     there. Any other answer is a failed attempt, which is repeated. `410`, `429` and `503` always mean the same.
             */
            success?: {
                pointer?: string;
                status?: number[];
                value?: Record<string, never> | unknown[] | string | number | boolean | null;
            } | null;
            /**
             * @description Where to send the call: http or https, without user name and password. It is kept and called byte for byte as
             *     given; only what no request line can have is percent-encoded, and the fragment is not sent.
             */
            url: components["schemas"]["WebhookUrl"];
        };
        /** @description A person has a `password`. Only an administrator's token creates a service account, which has none and acts only with API keys; for other callers `service` is ignored. */
        PersonOrService: {
            /**
             * Format: password
             * @description At least 5 characters (the operator can require more), at most 72 bytes, both in Unicode's normal form C.
             */
            password: string;
            /** @enum {boolean|null} */
            service?: false | null;
        } | {
            password?: null;
            /** @enum {boolean|null} */
            service: true | null;
        };
        /** @description The body of a problem, `application/problem+json`. */
        Problem: {
            /** @description A stable code in kebab case. Programs should check only this field. */
            code: string;
            /** @description What is wrong, what is expected, and what to do. */
            detail: string;
            /** @description The status's reason phrase. */
            error: string;
            /** @description One entry for each invalid field, at most 20, if the code is `validation-failed`. */
            errors?: components["schemas"]["FieldError"][];
            /** @description The same text as `detail`. */
            message: string;
            /** @description The response's `X-Request-Id`. */
            requestId: string;
            /**
             * Format: int32
             * @description The response's status.
             */
            status: number;
            /**
             * Format: int32
             * @description The same number as `status`.
             */
            statusCode: number;
            /** @description The code in words. */
            title: string;
            /** @description `urn:countersign:problem:` and the code. */
            type: string;
        };
        /** @description A queue of messages about rows that are due, as it was at most five seconds ago. */
        Queue: {
            /** @description Whether the service can publish messages: it is connected to the broker, which accepts them. If not, the numbers may be old. */
            connected: boolean;
            /**
             * Format: int32
             * @description How many messages no worker could process.
             */
            deadLetters: number;
            /**
             * Format: int32
             * @description How many messages wait for a worker. Of `webhook.due-deliveries` each worker has a queue of its own, and this is always 0.
             */
            messages: number;
            /** @description The queue's name. */
            name: string;
        };
        Readiness: {
            checks: {
                [key: string]: "ok" | "failing";
            };
            /** @enum {string} */
            status: "ready" | "not-ready";
        };
        /** @description The result of sending failed deliveries of a host again. */
        RedeliveredDeliveries: {
            /** @description How many are sent again. */
            redelivered: number;
            /**
             * Format: int64
             * @description How many failed ones are left, counted up to 100,000: then call again.
             */
            remaining: number;
        };
        /** @description A new webhook. */
        RegisterWebhookRequest: components["schemas"]["NewWebhookFields"] & {
            /** @description The task's id. */
            taskId: components["schemas"]["TaskId"];
        };
        ResetForgottenPasswordRequest: {
            /** @description The code that was sent. */
            code: string;
            /**
             * Format: password
             * @description At least 5 characters (the operator can require more), at most 72 bytes, both in Unicode's normal form C.
             */
            password: string;
        };
        ResetPasswordRequest: {
            /**
             * Format: email
             * @description An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed.
             */
            email: string;
            /**
             * Format: password
             * @description At least 5 characters (the operator can require more), at most 72 bytes, both in Unicode's normal form C.
             */
            password: string;
        };
        /** @description The result of starting failed deletions again. */
        RetriedDeletions: {
            /** @description Whether there may be more: then call again. */
            more: boolean;
            /** @description The number of deletions that are in progress again. */
            retried: number;
        };
        /** @description A browser that stays signed in. */
        Session: {
            /**
             * Format: date-time
             * @description RFC 3339 in UTC with milliseconds.
             */
            created: string;
            /** @description Whether the token of this request was issued for it. */
            current: boolean;
            /**
             * Format: date-time
             * @description When it ends if it is not used.
             */
            expires: string;
            /** @description 24 lower-case hexadecimal digits. */
            id: string;
            /**
             * Format: date-time
             * @description When a page was opened with it last.
             */
            lastUsed: string;
            /** @description The address of its last use: an IPv4 address or an IPv6 /64 network. */
            network: string;
            /** @description What the browser calls itself: its `User-Agent`. */
            program: string;
        };
        /** @description At least one of `username` and `email` is required. Each takes the username or the e-mail address; `email` is used if `username` is absent. */
        SignInName: {
            email?: string | null;
            username: string;
        } | {
            email: string;
            username?: string | null;
        };
        /** @description The body of sign-in. */
        SignInRequest: components["schemas"]["SignInName"] & {
            /** Format: password */
            password: string;
        };
        /** @description A token and its user. */
        SignInResponse: {
            /** @description The access token. Send it as `Authorization: Bearer <token>`. */
            token: string;
            user: components["schemas"]["SignInResponseUser"];
        };
        /** @description The user in the responses of sign-in and sign-up. */
        SignInResponseUser: {
            email: string;
            /** @description 24 lower-case hexadecimal digits. */
            id: string;
            isActive: boolean;
            plan: string;
            scope: string[];
            /** @description True for a service account, else absent. */
            service?: boolean;
            username: string;
            vendor?: (string | string[]) | null;
        };
        /** @description 24 lower-case hexadecimal digits. */
        TaskId: string;
        /**
         * @description A task. It always has the seven default fields. The others are there when the operation adds them or
         *     `include` names them.
         */
        TaskResponse: {
            /** @description E-mail address of the person who decides. */
            approver: string;
            /**
             * @description Gives the approver access to the task without a token. Present at creation, and when the creator or an
             *     administrator replaced the approver.
             */
            approverSecret?: string;
            /** @description Whether the caller may decide the task while it is pending. Present with `include`. */
            canDecide?: boolean;
            /**
             * @description What that person wrote about it; null if nothing. Present with `include`. The body of a webhook call
             *     has it if it is not null.
             */
            comment?: string | null;
            /** @description Whether a rejection needs a comment. Present with `include`. */
            commentRequired?: boolean;
            /** @description Whether the page asks for a second press before it sends a decision. Present with `include`. */
            confirmationRequired?: boolean;
            /**
             * Format: date-time
             * @description When the task was created. Present with `include`.
             */
            created?: string;
            /**
             * @description E-mail address of the person who decided or withdrew the task: the signed-in user's, or that of the person whose
             *     secret was used. Null before, for an address that was not confirmed, and for decisions of early versions. Present with `include`.
             */
            decidedBy?: string | null;
            decidedVia?: components["schemas"]["DecidedVia"] | null;
            deciders?: components["schemas"]["Deciders"] | null;
            /** @description The date by which a decision is needed, `YYYY-MM-DD HH:MM:SS` in UTC; null if there is none. */
            decisionBy: string | null;
            /**
             * Format: date-time
             * @description When the task was decided or withdrawn; null before. Present with `include`.
             */
            decisionMade?: string | null;
            /** @description The details. */
            description: string;
            /** @description The task's identifier: 24 lower-case hexadecimal digits. */
            id: string;
            /** @description Whether the caller is the approver, by e-mail address or by the approver's secret. Present with `include`. */
            isApprover?: boolean;
            /** @description Whether the caller is the requester, by e-mail address or by the requester's secret. Present with `include`. */
            isRequester?: boolean;
            /** @description What the task's creator keeps with it; null if nothing. Present with `include`, for the creator and administrators. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: date-time
             * @description When the task last changed. Present with `include`.
             */
            mtime?: string;
            /** @description Whether every signed-in user may read the task. Present at creation, or with `include`. */
            public?: boolean;
            /** @description E-mail address of the person who needs the decision. */
            requester: string;
            /**
             * @description Gives the requester access to the task without a token. Present at creation, and when the creator or an
             *     administrator replaced the requester.
             */
            requesterSecret?: string;
            /** @description Whether who created or requested the task may decide it. Present with `include`. */
            selfApproval?: boolean;
            /** @description Whether and how the task was decided, or whether it was withdrawn. */
            status: components["schemas"]["TaskStatus"];
            /** @description The same as `id`; only under `/plugins/appmixer/utils/tasks`. */
            taskId?: string;
            /** @description What the approver decides about. */
            title: string;
            /**
             * Format: int64
             * @description Counts the changes of what is decided on: `title`, `description`, `decisionBy`, `approver` and `requester`. It begins
             *     at 1, and `ETag` has the same number. Present with `include`.
             */
            version?: number;
        };
        /**
         * @description The state of a task. A task leaves `pending` once.
         * @enum {string}
         */
        TaskStatus: "pending" | "approved" | "rejected" | "cancelled";
        /** Format: visible-text */
        TaskTitle: string;
        /**
         * @description The body of an update. Fields that are absent or null keep their value, except that null removes
         *     `vendor`.
         */
        UpdateUserRequest: {
            allowedPrivateComponents?: string[] | null;
            email?: string | null;
            isActive?: boolean | null;
            metadata?: Record<string, never> | null;
            password?: string | null;
            plan?: string | null;
            scope?: string[] | null;
            username?: string | null;
            /** @description Null removes the vendor. */
            vendor?: (string | string[]) | null;
        };
        /** @description A key among those of all users. */
        UserKey: components["schemas"]["Key"] & {
            /** @description 24 lower-case hexadecimal digits. */
            userId: string;
            username: string;
        };
        /** @description The jobs that wait for workers. */
        UserQueues: {
            /** @description The jobs that have not ended. */
            jobs: components["schemas"]["JobBacklog"][];
            /** @description The queues of messages. The work itself is in the database. */
            queues: components["schemas"]["Queue"][];
        };
        /** @description A user as shown to administrators. */
        UserResponse: {
            /** @description The component types that the user can use. */
            allowedPrivateComponents: string[];
            /**
             * Format: date-time
             * @description RFC 3339 in UTC with milliseconds.
             */
            created: string;
            email: string;
            /** @description 24 lower-case hexadecimal digits. */
            id: string;
            /** @description An inactive user cannot sign in. */
            isActive: boolean;
            /** @description Null before the first sign-in. */
            lastSignIn?: string | null;
            /** @description An object that clients store with the account. */
            metadata: Record<string, never>;
            /**
             * Format: date-time
             * @description The time of the last change of the account.
             */
            mtime: string;
            plan: string;
            scope: string[];
            /** @description True for a service account, else absent. */
            service?: boolean;
            username: string;
            vendor?: (string | string[]) | null;
        };
        /** @description The body of a confirmation of an e-mail address. */
        VerifyEmailRequest: components["schemas"]["AccountProof"] & {
            /** @description The code that was sent. */
            code: string;
        };
        /**
         * @description What a webhook is called for.
         * @enum {string}
         */
        WebhookEvent: "approved" | "rejected" | "due" | "cancelled";
        /**
         * @description A URL that is called when its task is decided, or when its due date passes. Those who see the whole URL
         *     see the fields after `status`, which except for `events` are there if the registration had them.
         */
        WebhookResponse: {
            /** @description A body with placeholders. */
            body?: Record<string, never> | unknown[] | string | number | boolean;
            /**
             * @description What it is called for. It is missing where that is what registrations without `events` get on the same path: the
             *     decision, under `/plugins/appmixer/utils/tasks` also `due`.
             */
            events?: components["schemas"]["WebhookEvent"][];
            /** @description The names of the headers, in lower case. Their values are never returned. */
            headers?: string[];
            /** @description The webhook's identifier. */
            id: string;
            /** @description Fields that the body has beside the usual ones. */
            include?: string[];
            /**
             * @description The method of the calls of a webhook.
             * @enum {string}
             */
            method?: "POST" | "PUT" | "PATCH";
            /**
             * @description `pending` until it is delivered, then `sent`; `fail` if it was given up. It is about the newest event: after `due`
             *     was sent, it is `pending` again from the decision until that is delivered.
             */
            status: components["schemas"]["DeliveryStatus"];
            /** @description When a call has succeeded. */
            success?: {
                pointer?: string;
                status?: number[];
                value?: Record<string, never> | unknown[] | string | number | boolean | null;
            };
            /** @description The task's id. */
            taskId: string;
            /**
             * @description The URL that is called, as given. In a list, only the task's creator, the user who registered the webhook and
             *     administrators see all of it; others see the scheme and the host.
             */
            url: string;
            /** @description The same as `id`; only under `/plugins/appmixer/utils/tasks`. */
            webhookId?: string;
        };
        /** @description What came of a call that tried a webhook. */
        WebhookTest: components["schemas"]["WebhookTestResult"] & {
            /** @description The `webhook-id` of the call. */
            id: string;
        };
        /** @description What came of a call that tried a webhook. The database has it in this form. */
        WebhookTestResult: {
            /**
             * Format: date-time
             * @description When the call was made.
             */
            at: string;
            /**
             * Format: int32
             * @description How long it took, in milliseconds.
             */
            durationMs: number;
            /** @description Why it is no success; null if it is, or if the status code alone says so. */
            error: string | null;
            /**
             * Format: int32
             * @description The answer's status code; null without an answer.
             */
            statusCode: number | null;
            /** @description Whether a delivery with this answer would count as sent. */
            success: boolean;
        };
        /** Format: uri */
        WebhookUrl: string;
    };
    responses: {
        /** @description The service behind the gateway cannot be reached, and nothing was changed; or it closed the connection or sent an invalid response, or its response was dropped because too many have not been read yet, and the request may have taken effect. The detail says which. */
        BadGateway: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body took too long to arrive. Send it again. */
        BodyTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
        RateLimited: {
            headers: {
                /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                RateLimit?: string;
                /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                "RateLimit-Policy"?: string;
                /** @description Seconds to wait. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The service behind the gateway took too long. The request may still take effect. */
        Timeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body must have at most 256 KiB (262144 bytes). */
        TooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description This call needs an access token: send `Authorization: Bearer <token>`. */
        Unauthorized: {
            headers: {
                /** @description `Bearer` as in RFC 6750. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
        Unavailable: {
            headers: {
                /** @description Seconds to wait. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
};
export type $defs = Record<string, never>;
export interface operations {
    keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySet"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["Timeout"];
        };
    };
    webhookKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys, the one in use first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["Timeout"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
                /** @description `<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending). */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entries of the page. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEntry"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gateway is up. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        status: string;
                    };
                };
            };
        };
    };
    listTaskAudit: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
                /** @description `<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending). */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of rows. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEntry"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of deliveries. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    cancelDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The delivery's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The delivery does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `delivery-ended`: The delivery was sent or has failed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The delivery's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The delivery does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    cancelDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostOfDeliveries"];
            };
        };
        responses: {
            /** @description How many were cancelled, and how many are left. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CancelledDeliveries"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listDeliveryHosts: {
        parameters: {
            query?: {
                /** @description Only hosts after this one in alphabetical order. */
                after?: string;
                /** @description Only this host, whether it has deliveries or not. */
                host?: string;
                /** @description The maximum number of hosts of a page. If there are more, the `Link` header leads to the next page. */
                limit?: number;
                /** @description Only hosts with `pending` deliveries, with deliveries that have failed (`fail`), or that are `paused`. */
                status?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of hosts. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryHost"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    pauseDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostOfDeliveries"];
            };
        };
        responses: {
            /** @description The host. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryHost"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `too-many-paused-hosts`: 1,000 hosts are paused already. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    redeliverDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostOfDeliveries"];
            };
        };
        responses: {
            /** @description How many are sent again, and how many are left. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedeliveredDeliveries"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    resumeDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostOfDeliveries"];
            };
        };
        responses: {
            /** @description The host. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryHost"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getDeliveryQueues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue and the deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryQueues"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    showUnsubscribePage: {
        parameters: {
            query: {
                /** @description `on` turns reminders on again. */
                reminders?: string;
                /** @description The token of the link. */
                token: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page with a button. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. `validation-failed`: The link is incomplete, or was made with a key that is no longer known. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["Timeout"];
        };
    };
    unsubscribe: {
        parameters: {
            query: {
                /** @description `on` turns reminders on again. */
                reminders?: string;
                /** @description The token of the link. */
                token: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that says so. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. `validation-failed`: The link is incomplete, or was made with a key that is no longer known. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
                /** @description A text to search for, literally and case-insensitively. */
                pattern?: string;
                /** @description Fields to leave out, separated by commas, each after a minus sign. */
                projection?: string;
                /** @description Only the tasks of one of the user's roles: `creator`, `approver` or `requester`. Administrators may list all tasks with `any`. */
                role?: string;
                /** @description `<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending). */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of tasks. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedTaskResponse"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: `role=any` is for administrators. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    createTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
            };
            header?: {
                /**
                 * @description 1 to 255 printable characters that only this request and its repeats have. Within 24 hours, a request of the same
                 *     user with the same key and body gets the answer of the first one, with `Idempotent-Replayed: true`. Only successes
                 *     are remembered.
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateTaskRequest"];
            };
        };
        responses: {
            /** @description The task with `public` and its two secrets. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    /** @description `true` if an earlier request with this key got this answer. */
                    "Idempotent-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewTaskResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. `validation-failed`: The URL's host is not allowed. `validation-failed`: The address is not public, and its origin is not one of flow engines. `validation-failed`: The operator has not set what headers need. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `idempotency-key-in-use`: A request with the same key is being processed. `quota-exceeded`: The user, or all together, have as much as they may have. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency-key-reused`: The key was used for another body. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: The user, or all together, add too much at a time. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    countTasks: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description A text to search for, literally and case-insensitively. */
                pattern?: string;
                /** @description Only the tasks of one of the user's roles: `creator`, `approver` or `requester`. Administrators may list all tasks with `any`. */
                role?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CountResponse"];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: `role=any` is for administrators. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
                /** @description How long to wait while the task is pending, in seconds. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskResponse"];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    editTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
            };
            header?: {
                /**
                 * @description The versions of the task that the request applies to, as `ETag` has them, or `*`. Another version is
                 *     `409 task-changed`.
                 */
                "If-Match"?: string;
            };
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditTaskRequest"];
            };
        };
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `quota-exceeded`: The user, or all together, have as much as they may have. `task-already-resolved`: The task is already resolved. `task-changed`: The task is not the version of `If-Match` or `version`. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: The user, or all together, add too much at a time. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    approveTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
            };
            header?: {
                /**
                 * @description The versions of the task that the request applies to, as `ETag` has them, or `*`. Another version is
                 *     `409 task-changed`.
                 */
                "If-Match"?: string;
            };
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DecisionRequest"] | null;
            };
        };
        responses: {
            /** @description The task, approved. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `task-already-resolved`: The task is already resolved. `task-changed`: The task is not the version of `If-Match` or `version`. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    previewCancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The numbers of webhooks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CancelPreview"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `task-already-resolved`: The task is already resolved. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    cancelTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
            };
            header?: {
                /**
                 * @description The versions of the task that the request applies to, as `ETag` has them, or `*`. Another version is
                 *     `409 task-changed`.
                 */
                "If-Match"?: string;
            };
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelRequest"] | null;
            };
        };
        responses: {
            /** @description The task, cancelled. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `task-already-resolved`: The task is already resolved. `task-changed`: The task is not the version of `If-Match` or `version`. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listTaskDeliveries: {
        parameters: {
            query?: {
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
            };
            header?: never;
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of deliveries. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    rejectTask: {
        parameters: {
            query?: {
                /** @description Fields to add to the response, separated by commas. */
                include?: string;
            };
            header?: {
                /**
                 * @description The versions of the task that the request applies to, as `ETag` has them, or `*`. Another version is
                 *     `409 task-changed`.
                 */
                "If-Match"?: string;
            };
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DecisionRequest"] | null;
            };
        };
        responses: {
            /** @description The task, rejected. */
            200: {
                headers: {
                    /** @description The task's version. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `task-already-resolved`: The task is already resolved. `task-changed`: The task is not the version of `If-Match` or `version`. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listTaskWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The task's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description At most 20 webhooks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"][];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    registerWebhook: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description 1 to 255 printable characters that only this request and its repeats have. Within 24 hours, a request of the same
                 *     user with the same key and body gets the answer of the first one, with `Idempotent-Replayed: true`. Only successes
                 *     are remembered.
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterWebhookRequest"];
            };
        };
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    /** @description `true` if an earlier request with this key got this answer. */
                    "Idempotent-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. `validation-failed`: The URL's host is not allowed. `validation-failed`: The address is not public, and its origin is not one of flow engines. `validation-failed`: The operator has not set what headers need. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The task does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `idempotency-key-in-use`: A request with the same key is being processed. `quota-exceeded`: The user, or all together, have as much as they may have. `task-already-resolved`: The task is already resolved. `too-many-webhooks`: The task already has 20 webhooks, or 10 of approvers and requesters. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency-key-reused`: The key was used for another body. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: The user, or all together, add too much at a time. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    deleteWebhookByGet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The webhook's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook is deleted: `{}`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The webhook does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The webhook's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook is deleted: `{}`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The webhook does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The webhook's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the receiver answered. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: The caller can read the task but lacks the permission for this operation. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: The webhook does not exist or is not visible to the caller. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `deliveries-paused`: Deliveries to the host are paused. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: The user, or all together, try too many webhooks. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `no-test-result`: There was no result in time. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gateway is ready. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            429: components["responses"]["RateLimited"];
            /** @description The gateway is not ready yet. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    startSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignInRequest"];
            };
        };
        responses: {
            /** @description Signed in. */
            200: {
                headers: {
                    /** @description The session. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-credentials`: The username or the password is wrong (403 if SIGN_IN_FAILURE_STATUS says so). */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `account-inactive`: The password is correct, but the account is inactive. `cross-site-request`: Only the pages of this server may use sessions. Programs get tokens from `POST /user/auth`. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. `too-many-attempts`: Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description There is no session. */
            200: {
                headers: {
                    /** @description Removes the session. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `cross-site-request`: Only the pages of this server may use sessions. Programs get tokens from `POST /user/auth`. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    exchangeSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExchangeRequest"];
            };
        };
        responses: {
            /** @description A token. */
            200: {
                headers: {
                    /** @description The next value of the session. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session-ended`: The session has ended, or there is none. Sign in again. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `cross-site-request`: Only the pages of this server may use sessions. Programs get tokens from `POST /user/auth`. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `session-busy`: Another request of this browser exchanged the session at the same time. Repeat the request. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    currentUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CurrentUserResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateUserRequest"];
            };
        };
        responses: {
            /** @description The user was created. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: API_USER_CREATE_SCOPE is set and the token has none of its scopes. `key-not-accepted`: An API key makes no administrators. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `email-taken`: Another user already has this e-mail address. Choose another one. `username-taken`: Another user already has this username. Choose another one. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    signIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignInRequest"];
            };
        };
        responses: {
            /** @description Signed in. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-credentials`: The username or the password is wrong (403 if SIGN_IN_FAILURE_STATUS says so). */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `account-inactive`: The password is correct, but the account is inactive. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. `too-many-attempts`: Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    changePassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangePasswordRequest"];
            };
        };
        responses: {
            /** @description The password was changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangePasswordResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. `wrong-password`: The field `oldPassword` is not the user's password. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. `too-many-attempts`: Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    forgotPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgotPasswordRequest"];
            };
        };
        responses: {
            /** @description What was queued, one entry for each channel. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForgotPasswordResponse"][];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many codes were requested for this e-mail address or by this client. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `forgot-password-not-configured`: No channel is configured that could carry a code. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    resetForgottenPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResetForgottenPasswordRequest"];
            };
        };
        responses: {
            /** @description The password was set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `invalid-code`: The code is unknown, was used, or has expired. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"][];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateKeyRequest"];
            };
        };
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewKey"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `too-many-keys`: A user has at most 50 keys. End one that is no longer needed first. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    endKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's id: 24 lower-case hexadecimal digits. */
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such key. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    resetPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResetPasswordRequest"];
            };
        };
        responses: {
            /** @description The password was set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `deletion-in-progress`: A deletion of this user is in progress, so the user cannot be changed. `DELETE /users/{userId}` returns its ticket again, by which it can be cancelled. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"][];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    endUserSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id: 24 lower-case hexadecimal digits. */
                sessionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such session. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    verifyEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerifyEmailRequest"];
            };
        };
        responses: {
            /** @description The address is confirmed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `invalid-code`: The code is unknown, was used, or has expired. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. `wrong-password`: The field `password` is not the account's password. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `code-of-another-account`: The token is of another account than the code, which stays valid. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `deletion-in-progress`: A deletion of this user is in progress, so the user cannot be changed. `DELETE /users/{userId}` returns its ticket again, by which it can be cancelled. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. `too-many-attempts`: Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    resendVerificationCode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A code was queued for each channel. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `email-already-confirmed`: The e-mail address is confirmed. Sign in again to get a token that says so. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many codes were requested for this e-mail address or by this client. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `verification-not-configured`: No channel is configured that could carry a code. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listUsers: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
                /** @description A text to search for, literally and case-insensitively. */
                pattern?: string;
                /** @description `<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending). */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The users of the page. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` if there is a next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserResponse"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    updateUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateUserRequest"];
            };
        };
        responses: {
            /** @description The updated user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserResponse"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: An API key changes no passwords, usernames or addresses, and makes no administrators. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `deletion-in-progress`: A deletion of this user is in progress, so the user cannot be changed. `DELETE /users/{userId}` returns its ticket again, by which it can be cancelled. `email-taken`: Another user already has this e-mail address. Choose another one. `last-admin`: The last active administrator cannot be demoted or deactivated. `username-taken`: Another user already has this username. Choose another one. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate-limited`: Too many passwords from the client's address are being checked at once. Too many requests from your address in a short time (`rate-limited`), too many that have no response yet (`too-many-concurrent-requests`), or too many with texts that are no API keys (`too-many-attempts`). */
            429: {
                headers: {
                    /** @description The requests that are left (`r`), and the seconds until one more is available (`t`). */
                    RateLimit?: string;
                    /** @description The limit: its name, the requests that may come at once (`q`), and the seconds until all of them are available again (`w`). */
                    "RateLimit-Policy"?: string;
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. `overloaded`: Too many passwords are being checked. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deletion is in progress. */
            200: {
                headers: {
                    /** @description The path of the delete status. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletionTicket"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `last-admin`: The last active administrator cannot be deleted. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getDeletionStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The ticket of the deletion. */
                ticket: string;
                /** @description The user's id. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The progress of the deletion. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletionStatus"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such deletion ticket. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    cancelDeletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The ticket of the deletion. */
                ticket: string;
                /** @description The user's id. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deletion is cancelled. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletionStatus"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such deletion ticket. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `deletion-ended`: The deletion has already ended. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listUserKeys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"][];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such key. `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    createUserKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateKeyRequest"];
            };
        };
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewKey"];
                };
            };
            /** @description `incomplete-body`: The body ended before its declared length. Send it again. `malformed-json`: The body is not JSON. `validation-failed`: Fields are missing or invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["BodyTimeout"];
            /** @description `too-many-keys`: A user has at most 50 keys. End one that is no longer needed first. `user-inactive`: The user is inactive or is being deleted. Keys are for active users. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body-too-large`: The body must have at most 256 KiB (262144 bytes). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type`: The body must be JSON: send it with `Content-Type: application/json`. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    endUserKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's id: 24 lower-case hexadecimal digits. */
                keyId: string;
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such key. `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    confirmUserKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's id: 24 lower-case hexadecimal digits. */
                keyId: string;
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such key. `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    revokeTokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id: 24 lower-case hexadecimal digits. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: There is no such user. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    countUsers: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description A text to search for, literally and case-insensitively. */
                pattern?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of users that match all conditions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CountResponse"];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listDeletions: {
        parameters: {
            query?: {
                /** @description `<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most 20: all must match. Write a comma inside a value as `\,`. */
                filter?: string;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deletions of the page. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` when there are more. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deletion"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    retryDeletions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deletions are in progress again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetriedDeletions"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    listAllKeys: {
        parameters: {
            query?: {
                /** @description Only keys that are confirmed, or only those that are not. */
                confirmed?: boolean;
                /** @description The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page. */
                limit?: number;
                /** @description How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys of the page. */
            200: {
                headers: {
                    /** @description `<…>; rel="next"` when there are more. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserKey"][];
                };
            };
            /** @description `validation-failed`: Query parameters are invalid; `errors` lists each. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    confirmAllKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys are on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConfirmedResponse"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `key-not-accepted`: API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
    getUserQueues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queues and jobs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserQueues"];
                };
            };
            /** @description `invalid-token`: The token is invalid. Sign in to get a new one. `token-expired`: The token has expired. Sign in to get a new one. `token-missing`: This call needs an access token: send `Authorization: Bearer <token>`. `token-revoked`: The token was revoked. Sign in to get a new one. `invalid-key`: The API key is unknown, or has ended or expired. Ask for another one. This call needs an access token: send `Authorization: Bearer <token>`. */
            401: {
                headers: {
                    /** @description `Bearer` as in RFC 6750. */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient-scope`: This call needs a token with the scope `admin`. `insufficient-scope`: The API key lacks a scope. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["RateLimited"];
            502: components["responses"]["BadGateway"];
            /** @description `database-unavailable`: The database is unavailable. Try again shortly. `overloaded`: The service is overloaded. Try again shortly. Too many requests of all callers at once (`overloaded`), the service does not respond and its circuit is open (`upstream-unavailable`), or an API key cannot be checked now (`keys-unavailable`). Nothing was changed; try again soon. */
            503: {
                headers: {
                    /** @description Seconds to wait. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            504: components["responses"]["Timeout"];
        };
    };
}
