//! The Postgres servers: one, or a primary with a standby for which each commit waits.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::Context;
use local_stack::{Postgres, Servers, Stop, with_database};
use rig::sync::lock;

use crate::{
    failovers::{Failovers, Promotion, StandbyStop},
    schedule::FaultKind,
};

const DATABASE: &str = "countersign";

/// The servers, and what happened to them.
pub(crate) struct Databases {
    servers: Vec<Postgres>,
    /// The index of the primary.
    primary: AtomicUsize,
    /// Held during a fault: a killed server that becomes a standby may meet the next fault.
    fault_lock: Mutex<()>,
    pub(crate) failovers: Failovers,
}

impl Databases {
    pub(crate) fn new(servers: &Servers) -> Self {
        Self {
            servers: servers.databases().cloned().collect(),
            primary: AtomicUsize::new(0),
            fault_lock: Mutex::default(),
            failovers: Failovers::default(),
        }
    }

    pub(crate) fn has_standby(&self) -> bool {
        self.servers.len() > 1
    }

    /// The superuser's URL on the primary.
    pub(crate) fn admin_url(&self) -> anyhow::Result<String> {
        with_database(&self.primary()?.admin_url(), DATABASE)
    }

    pub(crate) fn wait_ready(&self) -> anyhow::Result<()> {
        self.servers.iter().try_for_each(Postgres::wait_ready)
    }

    /// Stops a server, and ends the fault after `pause`, unless that says that the run is interrupted.
    pub(crate) fn hit(&self, kind: FaultKind, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let _lock = lock(&self.fault_lock);
        match kind {
            FaultKind::PromoteStandby => self.promote_standby(pause),
            FaultKind::StopStandby => self.stop_standby(pause),
            _ => {
                let primary = self.primary()?;
                primary.stop(match kind {
                    FaultKind::KillDatabase => Stop::Kill,
                    _ => Stop::Graceful,
                })?;
                if pause() { primary.spawn() } else { Ok(()) }
            }
        }
    }

    /// Kills the primary, promotes the standby after `pause`, and makes the killed server its standby.
    fn promote_standby(&self, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let (old, new) = (self.primary()?, self.standby()?);
        let killed = Instant::now();
        self.failovers.start_promotion(killed);
        old.stop(Stop::Kill)?;
        if !pause() {
            return Ok(());
        }
        let promote = Instant::now();
        new.promote()?;
        let promoted = Instant::now();
        self.primary.fetch_xor(1, Ordering::Relaxed);
        old.follow(new)?;
        new.set_synchronous(true)?;
        self.failovers.end_promotion(Promotion {
            killed,
            unnoticed: promote - killed,
            promoted,
            followed: Instant::now(),
        });
        Ok(())
    }

    fn stop_standby(&self, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let standby = self.standby()?;
        standby.stop(Stop::Kill)?;
        let stopped = Instant::now();
        if !pause() {
            return Ok(());
        }
        let started = Instant::now();
        standby.spawn()?;
        standby.wait_ready()?;
        self.primary()?.wait_streaming()?;
        self.failovers.record_stop(StandbyStop { stopped, started });
        Ok(())
    }

    fn primary(&self) -> anyhow::Result<&Postgres> {
        let primary = self.servers.get(self.primary.load(Ordering::Relaxed));
        primary.context("there is no database server")
    }

    fn standby(&self) -> anyhow::Result<&Postgres> {
        let standby = self.servers.get(self.primary.load(Ordering::Relaxed) ^ 1);
        standby.context("there is no standby")
    }
}
