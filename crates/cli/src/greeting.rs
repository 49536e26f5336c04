//! What `up` prints when it is up: where it is, and what to type next. The tests type exactly that.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::data_directory;

/// The name of the file with a policy to begin with.
const FIRST_POLICY: &str = "first-policy.yaml";

/// What there is to say.
pub struct Greeting<'a> {
    /// Where clients on this machine reach the control plane.
    pub address: SocketAddr,
    /// Whether others reach it, too.
    pub is_open: bool,
    /// The file that lets kubectl in; it lies in the data directory.
    pub kubeconfig: &'a Path,
    /// Whether anything is there after the end.
    pub is_kept: bool,
    /// Whether it was up before with the same data; the first steps are printed only once.
    pub is_again: bool,
    /// The local clusters and their zones.
    pub members: Vec<(String, &'static str)>,
    /// Feature gates that differ from their default.
    pub gates: Vec<String>,
}

impl Greeting<'_> {
    /// Prints it, and leaves the policy that it speaks of in the data directory.
    pub fn print(&self) -> Result<()> {
        if !self.members.is_empty() {
            let file = self.first_policy();
            // An existing file is kept: the user may have edited it.
            if !file.exists() {
                data_directory::private_file(&file, &policy(&self.targets()))?;
            }
        }
        std::io::stdout().write_all(self.text().as_bytes()).context("print")
    }

    fn text(&self) -> String {
        let directory = self.kubeconfig.parent().unwrap_or(self.kubeconfig);
        let kept = match self.is_kept {
            true => format!("data in {}", directory.display()),
            false => "nothing is kept after it stops".to_owned(),
        };
        let mut text = format!("Longshore is up on https://{} ({kept}).\n", self.address);
        if self.is_open {
            let _ = writeln!(text, "Other machines can reach it; clients need credentials.");
        }
        if !self.members.is_empty() {
            let members: Vec<String> =
                self.members.iter().map(|(name, zone)| format!("{name} ({zone})")).collect();
            let _ = writeln!(text, "Local clusters: {}.", members.join(", "));
        }
        if !self.gates.is_empty() {
            let _ = writeln!(text, "Feature gates: {}.", self.gates.join(", "));
        }
        if self.is_again {
            let steps = [self.export(), "longshore status".to_owned()];
            let _ = writeln!(text, "\nNext, in another terminal:\n\n{}", lines(&steps));
            return text + "Ctrl-C stops it.\n";
        }
        let _ = writeln!(text, "\nFirst steps, in another terminal:\n\n{}", lines(&self.first_steps()));
        if !self.members.is_empty() {
            let _ = writeln!(text, "Then change the policy, suspend, resume, and clean up:\n");
            let _ = writeln!(text, "{}", lines(&self.next_steps()));
        }
        text + "Ctrl-C stops it.\n"
    }

    fn first_steps(&self) -> Vec<String> {
        let mut steps =
            vec![self.export(), "kubectl create deployment nginx --image=nginx --replicas=2".to_owned()];
        if self.members.is_empty() {
            steps.push("kubectl get deployments".to_owned());
            return steps;
        }
        steps.push("kubectl get clusters".to_owned());
        steps.push(format!("kubectl apply -f {}", quoted(&self.first_policy())));
        steps.extend(self.targets().iter().map(|member| format!("kubectl --context {member} get pods")));
        steps
    }

    fn export(&self) -> String {
        format!("export KUBECONFIG={}", quoted(self.kubeconfig))
    }

    fn next_steps(&self) -> Vec<String> {
        let patch = |spec: &str| {
            format!("kubectl patch propagationpolicy nginx --type=merge -p '{{\"spec\":{spec}}}'")
        };
        let mut steps = Vec::new();
        if let [.., (second, _), (last, _)] = self.members.as_slice() {
            steps.push(patch(&format!(
                "{{\"placement\":{{\"clusterAffinity\":{{\"clusterNames\":[\"{second}\",\"{last}\"]}}}}}}"
            )));
        }
        steps.push(patch("{\"suspension\":{\"dispatching\":true}}"));
        steps.push("kubectl scale deployment nginx --replicas=3".to_owned());
        steps.push(patch("{\"suspension\":null}"));
        steps.push("kubectl delete deployment nginx".to_owned());
        steps.push("kubectl delete propagationpolicy nginx".to_owned());
        steps
    }

    fn first_policy(&self) -> std::path::PathBuf {
        self.kubeconfig.with_file_name(FIRST_POLICY)
    }

    /// The members that the first policy names: two, so that there is somewhere else to go.
    fn targets(&self) -> Vec<&str> {
        self.members.iter().map(|(name, _)| name.as_str()).take(2).collect()
    }
}

/// What is printed when it has stopped: what is left, and how to start it again.
pub fn say_goodbye(data_dir: Option<&Path>) {
    let text = match data_dir {
        Some(data_dir) => format!(
            "\nLongshore has stopped. Everything is kept in {}; `longshore up` goes on from there.\n",
            data_dir.display()
        ),
        None => "\nLongshore has stopped. Nothing was kept.\n".to_owned(),
    };
    // The terminal may be gone, and nothing depends on this.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn lines(steps: &[String]) -> String {
    steps.iter().map(|step| format!("  {step}\n")).collect()
}

fn policy(members: &[&str]) -> String {
    format!(
        "# Which clusters get the Deployment nginx. Change it and apply it again: the pods follow.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinity:
      clusterNames: [{}]
",
        members.join(", ")
    )
}

/// A path as a shell takes it: in quotes where it has to be.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+:@%,=".contains(character);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(members: usize, gates: &[&str]) -> String {
        greeting_again(members, gates, false)
    }

    fn greeting_again(members: usize, gates: &[&str], is_again: bool) -> String {
        let zones = ["east-1", "west-1", "west-2"];
        let members = (0..members).map(|index| (format!("member{}", index + 1), zones[index])).collect();
        let greeting = Greeting {
            address: SocketAddr::from(([127, 0, 0, 1], 6500)),
            kubeconfig: Path::new("/home/me and you/kubeconfig"),
            is_open: false,
            is_kept: true,
            is_again,
            members,
            gates: gates.iter().map(|gate| (*gate).to_owned()).collect(),
        };
        greeting.text()
    }

    #[test]
    fn without_members_it_is_about_the_api_server() {
        let text = greeting(0, &[]);
        assert!(text.contains("  export KUBECONFIG='/home/me and you/kubeconfig'\n"), "{text}");
        assert!(!text.contains("policy") && !text.contains("Local clusters"), "{text}");
        assert!(!text.contains("Feature gates"), "{text}");
    }

    #[test]
    fn the_first_steps_are_told_once() {
        let text = greeting_again(3, &["StaticPolicy=true"], true);
        assert!(
            text.contains("  export KUBECONFIG='/home/me and you/kubeconfig'\n  longshore status\n"),
            "{text}"
        );
        assert!(
            text.contains("Feature gates: StaticPolicy=true.") && text.ends_with("Ctrl-C stops it.\n"),
            "{text}"
        );
        assert!(!text.contains("kubectl"), "{text}");
    }

    #[test]
    fn with_members_it_leads_through_a_policy() {
        let text = greeting(3, &["StaticPolicy=true"]);
        for line in [
            "Local clusters: member1 (east-1), member2 (west-1), member3 (west-2).",
            "Feature gates: StaticPolicy=true.",
            "  kubectl apply -f '/home/me and you/first-policy.yaml'",
            "  kubectl --context member2 get pods",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(text.contains("\"clusterNames\":[\"member2\",\"member3\"]"), "{text}");
        assert!(!greeting(1, &[]).contains("clusterNames"), "one member is no choice");
    }
}
