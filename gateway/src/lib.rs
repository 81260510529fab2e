//! The only public port: routing, token check, limits, proxying, documentation, pages
