//! Messages of conditions: bounded by the room that they take in a status.

/// The text, or as much of its beginning as takes at most `room` bytes as JSON.
///
/// A status is bounded as JSON, where a quotation mark takes two bytes and a control character six.
pub(crate) fn bounded(mut text: String, room: usize) -> String {
    const MORE: char = '…';
    let mut left = room;
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        let size = match letter {
            '"' | '\\' => 2,
            letter if letter.is_ascii_control() => "\\u0000".len(),
            letter => letter.len_utf8(),
        };
        let Some(rest) = left.checked_sub(size) else {
            text.truncate(end);
            text.push(MORE);
            return text;
        };
        left = rest;
        if left >= MORE.len_utf8() {
            end = at + letter.len_utf8();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_no_more_room_than_it_may_as_json() {
        for text in ["a".repeat(50), "\"\\\n".repeat(20), "ü…🙂".repeat(20)] {
            for room in 3..60 {
                let message = bounded(text.clone(), room);
                let taken = serde_json::to_string(&message).unwrap().len() - 2;
                assert!(taken <= room, "{message:?} takes {taken} of {room}");
                let kept = message.strip_suffix('…').unwrap_or(&message);
                assert!(text.starts_with(kept));
            }
        }
    }

    #[test]
    fn a_message_that_fits_is_left_alone() {
        let text = "a \"b\" ü".to_owned();
        let room = serde_json::to_string(&text).unwrap().len() - 2;
        assert_eq!(bounded(text.clone(), room), text);
        assert_ne!(bounded(text.clone(), room - 1), text);
    }
}
