//! `firn cache key`: making the keys that answers are signed with, in Nix's form.

use crate::failure::Failure;
use crate::program::Invocation;
use crate::settings::remote::secret_key;
use firn_remote::SecretKey;
use std::io::Read;

/// Runs the command.
pub fn run(invocation: &mut Invocation, words: &[Vec<u8>]) -> Result<(), Failure> {
    match words {
        [what, name] if what == b"generate" => {
            let name = std::str::from_utf8(name).map_err(|_| Failure::usage("the name of a key is text, not '", name, "'"))?;
            let bad = |error| Failure::usage("no key can be called '", name.as_bytes(), &format!("': {error}"));
            let key = SecretKey::generate(name).map_err(bad)?;
            invocation.output.line(key.reveal().as_bytes())
        }
        [what] if what == b"generate" => Err(Failure::Usage(b"what is the key to be called?".to_vec())),
        [what] if what == b"public" => {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| Failure::error(format!("reading from standard input: {}", firn_host::Errno::from(error))))?;
            let key = SecretKey::parse(&text).map_err(|error| Failure::error(format!("standard input: {error}")))?;
            invocation.output.line(key.public().to_string().as_bytes())
        }
        [what, file] if what == b"public" => {
            let key = secret_key(&*invocation.host, file)?;
            invocation.output.line(key.public().to_string().as_bytes())
        }
        _ => Err(Failure::Usage(b"say `key generate NAME` or `key public [FILE]`".to_vec())),
    }
}
