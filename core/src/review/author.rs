//! Who wrote what an object says, where the settings ask for it.

use ferromesh_crds::meta::LAST_AUTHOR_ANNOTATION;
use serde_json::Value;

use super::candidate::{Intent, says_the_same};
use crate::state::State;

/// Most bytes of a name.
const MAX_NAME: usize = 256;

/// The author that an object is to carry in its annotation [`LAST_AUTHOR_ANNOTATION`]: `user`, if what
/// it says is new; whom it carried before, if nothing but its metadata changes. None if it carries the
/// right one already, or if the settings do not ask for one.
pub fn author(state: &State, intent: &Intent, user: &str) -> Option<String> {
    let (old, new) = match intent {
        Intent::Create(new) => (None, new),
        Intent::Update { old, new } => (Some(old), new),
        Intent::Delete(_) => return None,
    };
    let settings = state.snapshot().settings.get(&state.options().settings())?;
    if !settings.records_authors {
        return None;
    }
    let author = match old {
        Some(old) if says_the_same(old, new) => carried(old)?,
        _ => &user[..user.floor_char_boundary(MAX_NAME)],
    };
    (carried(new) != Some(author)).then(|| author.to_owned())
}

fn carried(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(LAST_AUTHOR_ANNOTATION)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::change::Change;
    use crate::kinds::Kind;

    fn state(recorded: bool) -> State {
        let settings = json!({
            "metadata": { "name": "settings", "namespace": "gloo-mesh" },
            "spec": { "admission": { "recordAuthors": recorded } },
        });
        let settings = Kind::Settings.read(&settings, "").unwrap();
        State::default().step([Change::Upsert(settings)]).0
    }

    fn policy(timeout: &str, author: Option<&str>) -> Value {
        let annotations = author.map(|author| json!({ LAST_AUTHOR_ANNOTATION: author }));
        json!({
            "metadata": { "name": "p", "annotations": annotations },
            "spec": { "policy": { "requestTimeout": timeout } },
        })
    }

    fn update(old: Value, new: Value) -> Intent {
        Intent::Update { old, new }
    }

    #[test]
    fn whoever_writes_a_spec_is_its_author() {
        let state = state(true);
        let of = |intent: &Intent| author(&state, intent, "eve");
        let created = Intent::Create(policy("1s", None));
        assert_eq!(of(&created).as_deref(), Some("eve"));
        let pretended = Intent::Create(policy("1s", Some("adam")));
        assert_eq!(of(&pretended).as_deref(), Some("eve"));
        let changed = update(policy("1s", Some("adam")), policy("2s", Some("adam")));
        assert_eq!(of(&changed).as_deref(), Some("eve"));
        let own = update(policy("1s", Some("eve")), policy("2s", Some("eve")));
        assert_eq!(of(&own), None);
    }

    #[test]
    fn the_author_stays_when_nothing_else_is_said() {
        let state = state(true);
        let of = |intent: &Intent| author(&state, intent, "eve");
        let kept = update(policy("1s", Some("adam")), policy("1s", Some("adam")));
        assert_eq!(of(&kept), None);
        let taken = update(policy("1s", Some("adam")), policy("1s", None));
        assert_eq!(of(&taken).as_deref(), Some("adam"));
        let unknown = update(policy("1s", None), policy("1s", None));
        assert_eq!(of(&unknown), None);
    }

    #[test]
    fn authors_are_recorded_only_when_the_settings_ask_for_it() {
        let created = Intent::Create(policy("1s", None));
        assert_eq!(author(&state(false), &created, "eve"), None);
        assert_eq!(author(&State::default(), &created, "eve"), None);
    }
}
