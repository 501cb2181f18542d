//! The names of a file besides its path.

use super::*;

#[test]
fn the_path_that_a_rotated_file_had_outlives_a_restart_and_a_change() {
    let (_temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    let origin: Arc<Path> = Path::new("/var/log/x y.log").into();
    let origin_of = |checkpoint: &Checkpoint| {
        let web = checkpoint.pipeline("web").unwrap();
        web.resume(&["otlp"])[0].origin.clone()
    };
    for origin in [None, Some(&origin), Some(&origin), None] {
        let web = kept.checkpoint.pipeline_mut("web");
        web.set_origin(id(1), 0, origin);
        kept.save().unwrap();
        let loaded = Checkpoint::load(&data).unwrap();
        assert_eq!(origin_of(&loaded.checkpoint).as_ref(), origin);
        assert_eq!(origin_of(&kept.checkpoint).as_ref(), origin);
        // As a whole state, too.
        let (bytes, _) = wire::encode(&kept.checkpoint);
        let whole = wire::decode(&bytes).unwrap();
        assert_eq!(origin_of(&whole.checkpoint).as_ref(), origin);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.contains("origin"), origin.is_some());
    }
}

#[test]
fn where_a_file_behind_a_link_is_outlives_a_restart_and_a_change() {
    let (_temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    let target: Arc<Path> = Path::new("/targets/x.log").into();
    let target_of = |checkpoint: &Checkpoint| {
        let web = checkpoint.pipeline("web").unwrap();
        web.resume(&["otlp"])[0].target.clone()
    };
    for target in [None, Some(&target), Some(&target), None] {
        let web = kept.checkpoint.pipeline_mut("web");
        web.set_target(id(1), 0, target);
        kept.save().unwrap();
        let loaded = Checkpoint::load(&data).unwrap();
        assert_eq!(target_of(&loaded.checkpoint).as_ref(), target);
        assert_eq!(target_of(&kept.checkpoint).as_ref(), target);
        // As a whole state, too.
        let (bytes, _) = wire::encode(&kept.checkpoint);
        let whole = wire::decode(&bytes).unwrap();
        assert_eq!(target_of(&whole.checkpoint).as_ref(), target);
    }
}
