//! Pictures of every web page, with example data, in several looks, and how fast pages load: `cargo xtask screenshots`.
//!
//! They need a running system, which that command starts. A picture is of the page as a person sees it: the browser waits
//! for a text of the page and not for a time.

mod data;
mod measure;
mod pictures;

use std::path::PathBuf;

use rig::{Stack, Workspace, outln};

use self::data::Example;

fn example() -> Example {
    let workspace = Workspace::find().unwrap().aside("screenshots");
    let stack = Stack::read(&workspace).unwrap();
    let stack = stack.expect("no system runs: use cargo xtask screenshots");
    Example::create(&stack).unwrap()
}

#[tokio::test]
#[ignore = "cargo xtask screenshots runs it"]
async fn pictures_of_all_pages() {
    let folder = std::env::var_os("SCREENSHOTS").expect("the variable names the folder");
    let folder = PathBuf::from(folder);
    let count = pictures::take(&example(), &folder).await.unwrap();
    outln!("\n{count} pictures in {}", folder.display());
}

#[tokio::test]
#[ignore = "cargo xtask screenshots --measure runs it"]
async fn loading_times() {
    measure::run(&example()).await;
}
