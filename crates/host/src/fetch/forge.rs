//! Archives of revisions from GitHub, GitLab and SourceHut, and which revision a branch is at.

use firn_store::hash::{Algorithm, Format, Hash};
use firn_text::json::Tree;

use super::attrs::{Attr, text};
use super::error::{FetchError, shown};
use super::fetcher::{Fetcher, Found, Placed};
use super::input::Input;
use super::schemes::Scheme;

type Headers = Vec<(String, String)>;

/// Where a forge's repository is.
struct Repo<'a> {
    scheme: Scheme,
    host: &'a str,
    owner: &'a str,
    name: &'a str,
}

impl<'a> Repo<'a> {
    fn of(scheme: Scheme, input: &'a Input) -> Result<Repo<'a>, FetchError> {
        let host = match scheme {
            Scheme::GitHub => "github.com",
            Scheme::GitLab => "gitlab.com",
            _ => "git.sr.ht",
        };
        Ok(Repo {
            scheme,
            host: input.text("host").unwrap_or(host),
            owner: text(&input.attrs, "owner")?,
            name: text(&input.attrs, "repo")?,
        })
    }

    fn archive(&self, rev: &str, with_token: bool) -> String {
        let Repo { scheme, host, owner, name } = self;
        match scheme {
            Scheme::GitHub if *host != "github.com" => format!("https://{host}/api/v3/repos/{owner}/{name}/tarball/{rev}"),
            Scheme::GitHub if with_token => format!("https://api.{host}/repos/{owner}/{name}/tarball/{rev}"),
            Scheme::GitLab => format!("https://{host}/api/v4/projects/{owner}%2F{name}/repository/archive.tar.gz?sha={rev}"),
            _ => format!("https://{host}/{owner}/{name}/archive/{rev}.tar.gz"),
        }
    }
}

impl Fetcher {
    pub(super) fn find_forge(&self, scheme: Scheme, input: &Input) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let repo_of = |input: &Input| -> Result<(Headers, String), FetchError> {
            let repo = Repo::of(scheme, input)?;
            let headers = self.headers(&repo);
            let rev = match input.rev_text()? {
                Some(rev) => rev,
                None => self.branch_rev(&repo, input, &headers)?,
            };
            Ok((headers, rev))
        };
        let (headers, rev) = repo_of(&input)?;
        input.attrs.remove("ref");
        input.set("rev", rev.clone());
        let url = Repo::of(scheme, &input)?.archive(&rev, !headers.is_empty());
        let found = self.unpacked(&url, &headers)?;
        input.set("lastModified", Attr::Number(found.last_modified));
        Ok(Found { input, placed: Placed::Elsewhere(found.mount), nar_hash: Some(found.nar_hash) })
    }

    /// The header that the user's token for this repository makes, the longest match first.
    fn headers(&self, repo: &Repo<'_>) -> Headers {
        let place = format!("{}/{}/{}", repo.host, repo.owner, repo.name);
        let concerns = |key: &str| place.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let tokens = self.settings.access_tokens.iter().filter(|(key, _)| concerns(key));
        let Some((_, token)) = tokens.max_by_key(|(key, _)| key.len()) else { return Headers::new() };
        let (name, value) = match (repo.scheme, token.split_once(':')) {
            (Scheme::GitHub, _) => ("Authorization", format!("token {token}")),
            (Scheme::GitLab, Some(("OAuth2", token))) => ("Authorization", format!("Bearer {token}")),
            (Scheme::GitLab, Some(("PAT", token))) => ("Private-token", token.to_owned()),
            (Scheme::GitLab, Some((kind, token))) => {
                self.warn(&format!("Unrecognized GitLab token type {}", shown(kind)));
                (kind, token.to_owned())
            }
            _ => ("Authorization", format!("Bearer {token}")),
        };
        vec![(name.to_owned(), value)]
    }

    /// The revision that a branch is at.
    fn branch_rev(&self, repo: &Repo<'_>, input: &Input, headers: &Headers) -> Result<String, FetchError> {
        let branch = input.text("ref").unwrap_or("HEAD");
        let Repo { scheme, host, owner, name } = *repo;
        let rev = match scheme {
            Scheme::GitHub => {
                let api = if host == "github.com" { format!("api.{host}") } else { format!("{host}/api/v3") };
                let answer = self.json(&format!("https://{api}/repos/{owner}/{name}/commits/{branch}"), headers)?;
                answer.get("sha").and_then(Tree::as_text).map(str::to_owned)
            }
            Scheme::GitLab => {
                let url = format!("https://{host}/api/v4/projects/{owner}%2F{name}/repository/commits?ref_name={branch}");
                let answer = self.json(&url, headers)?;
                if answer.as_list().is_some_and(<[Tree]>::is_empty) {
                    let message = "No commits returned by GitLab API -- does the git ref really exist?";
                    return Err(FetchError::new(message));
                }
                answer.as_list().and_then(|list| list.first()?.get("id")?.as_text()).map(str::to_owned)
            }
            _ => self.sourcehut_rev(&format!("https://{host}/{owner}/{name}"), branch, input)?,
        };
        let rev = rev.ok_or_else(|| FetchError::new(format!("no revision in the answer for '{}'", shown(input.show()))))?;
        Ok(Hash::parse_any(rev.as_bytes(), Some(Algorithm::Sha1))?.to_string(Format::Base16, false))
    }

    fn sourcehut_rev(&self, base: &str, branch: &str, input: &Input) -> Result<Option<String>, FetchError> {
        let wanted: Vec<String> = if branch == "HEAD" {
            let head = self.answer(&format!("{base}/HEAD"), &Headers::new())?;
            let head = String::from_utf8_lossy(&head).into_owned();
            head.lines().next().and_then(|line| line.strip_prefix("ref: ")).map(str::to_owned).into_iter().collect()
        } else {
            vec![format!("refs/heads/{branch}"), format!("refs/tags/{branch}")]
        };
        let refs = self.answer(&format!("{base}/info/refs"), &Headers::new())?;
        let refs = String::from_utf8_lossy(&refs).into_owned();
        let found = refs.lines().filter_map(|line| line.split_once('\t')).find(|(_, name)| wanted.iter().any(|w| w == name));
        match found {
            Some((rev, _)) => Ok(Some(rev.to_owned())),
            None => {
                let parts = (shown(input.show()), shown(branch));
                Err(FetchError::bad_url(format!("in '{}', couldn't find ref '{}'", parts.0, parts.1)))
            }
        }
    }

    fn answer(&self, url: &str, headers: &Headers) -> Result<Vec<u8>, FetchError> {
        let place = self.downloaded_with(url, headers)?;
        let path = crate::AbsPath::new(std::os::unix::ffi::OsStrExt::as_bytes(place.as_os_str()))?;
        Ok(self.fresh_disk().read_once(&path)?.bytes().to_vec())
    }

    fn json(&self, url: &str, headers: &Headers) -> Result<Tree, FetchError> {
        Tree::parse(&self.answer(url, headers)?).map_err(|message| {
            FetchError::new(format!("answer of '{}': {}", shown(url), String::from_utf8_lossy(&message)))
        })
    }
}
