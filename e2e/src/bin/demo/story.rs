//! The steps. Each begins with what somebody wants, and holds when the clusters show it.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use ferromesh_ca::verify::{IstiodFiles, VerifiedSigner, verify_for_istiod};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::args::Args;
use crate::shell::Shell;
use crate::stage::{Clusters, Stage, example};
use crate::table::Table;

/// The names under which the two clusters with Istio are registered.
const NAMES: [&str; 2] = ["cluster-1", "cluster-2"];

/// Tells the whole story.
pub(crate) async fn tell(args: &Args, stage: &mut Stage, table: &mut Table) -> anyhow::Result<()> {
    table.begin("Three clusters");
    let clusters = stage.clusters(args).await?;
    table.holds(format!("{} answer", clusters.contexts.join(", ")));

    let mut story = Story {
        management: clusters.contexts[0].clone(),
        meshes: [clusters.contexts[1].clone(), clusters.contexts[2].clone()],
        shell: clusters.shell.clone(),
        table,
    };
    story.install(stage, &clusters, args).await?;
    story.load(stage, &clusters).await?;
    story.register(stage).await?;
    story.discover().await?;
    story.group(stage).await?;
    story.federate().await?;
    story.admit(stage).await?;
    story.refuse().await?;
    story.validate().await?;
    story.break_a_policy().await?;
    story.drift().await
}

struct Story<'a> {
    shell: Shell,
    /// The context of the management cluster.
    management: String,
    /// The contexts of the clusters with Istio.
    meshes: [String; 2],
    table: &'a mut Table,
}

impl Story<'_> {
    async fn install(
        &mut self,
        stage: &mut Stage,
        clusters: &Clusters,
        args: &Args,
    ) -> anyhow::Result<()> {
        self.table.begin("The server");
        let management = self.management.clone();
        self.shell
            .typed(&format!(
                "kubectl --context {management} apply --server-side -f crds/crds"
            ))
            .await?;
        stage.undo_by(format!(
            "kubectl --context {management} delete -f crds/crds"
        ));
        let namespace = self.shell.get(&management, "namespace gloo-mesh").await?;
        if namespace.is_none() {
            let line = format!("kubectl --context {management} create namespace gloo-mesh");
            self.shell.typed(&line).await?;
            stage.undo_by(format!(
                "kubectl --context {management} delete namespace gloo-mesh"
            ));
        }
        stage.start_server(clusters, args).await?;
        self.table
            .holds("the API server asks the webhook about every policy");
        Ok(())
    }

    async fn load(&mut self, stage: &mut Stage, clusters: &Clusters) -> anyhow::Result<()> {
        self.table.begin("Istio and Bookinfo");
        for (context, name) in self.meshes.clone().iter().zip(NAMES) {
            if clusters.has_istio {
                let istiod = self
                    .shell
                    .get(context, "deployment -n istio-system istiod")
                    .await?;
                ensure!(
                    istiod.is_some(),
                    "{context} has no istiod in istio-system: install Istio there first"
                );
                let line = format!(
                    "kubectl --context {context} apply -f docs/examples/bookinfo/{name}.yaml"
                );
                self.shell.typed(&line).await?;
                stage.undo_by(format!(
                    "kubectl --context {context} delete namespace bookinfo"
                ));
            } else {
                self.play_istio(context, name).await?;
            }
        }
        if !clusters.has_istio {
            println!(
                "\n  No injector runs here: the proxies were added to the pod templates, as by `istioctl kube-inject`."
            );
        }
        self.table
            .holds("two control planes, gateways, and six services in two clusters");
        Ok(())
    }

    /// A control plane's objects, and Bookinfo with its proxies written into the templates.
    async fn play_istio(&self, context: &str, name: &str) -> anyhow::Result<()> {
        let plane = std::fs::read_to_string(example("istio/control-plane.yaml"))?;
        let plane = plane.replace("TRUST_DOMAIN", &format!("{name}.example.com"));
        let app = std::fs::read_to_string(example(&format!("bookinfo/{name}.yaml")))?;
        let port = "            - containerPort: 9080\n";
        let proxy =
            "        - name: istio-proxy\n          image: docker.io/istio/proxyv2:1.29.2\n";
        let app = app.replace(port, &format!("{port}{proxy}"));
        println!(
            "\n  $ kubectl --context {context} apply -f docs/examples/istio -f docs/examples/bookinfo/{name}.yaml"
        );
        let line = format!("kubectl --context {context} apply -f -");
        for file in [plane, app] {
            self.shell.quiet(&line, Some(&file)).await?;
        }
        Ok(())
    }

    async fn register(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        self.table.begin("Registration");
        let management = self.management.clone();
        for (context, name) in self.meshes.clone().iter().zip(NAMES) {
            let line = format!(
                "meshctl cluster register {name} --context {management} --remote-context {context}"
            );
            self.shell.typed(&line).await?;
            stage.undo_by(format!(
                "meshctl cluster deregister {name} --purge --context {management} --remote-context {context}"
            ));
        }
        for name in NAMES {
            self.until_condition(&format!("kubernetescluster -n gloo-mesh {name}"), "Ready")
                .await?;
        }
        self.shell
            .typed(&format!("meshctl cluster list --context {management}"))
            .await?;
        self.table.holds("both clusters have told all they have");
        Ok(())
    }

    async fn discover(&mut self) -> anyhow::Result<()> {
        self.table.begin("Discovery");
        let management = self.management.clone();
        let mut told = Vec::new();
        for (kind, least) in [("meshes", 2), ("workloads", 9), ("destinations", 8)] {
            let count = |list: &Value| {
                let count = list["items"].as_array()?.len();
                (count >= least).then_some(count)
            };
            let count = self
                .shell
                .until(&management, &format!("{kind} -n gloo-mesh"), count)
                .await?;
            told.push(format!("{count} {kind}"));
        }
        for kind in ["meshes", "workloads", "destinations"] {
            let line = format!("kubectl --context {management} get {kind} -n gloo-mesh");
            self.shell.typed(&line).await?;
        }
        self.table.holds(told.join(", "));
        Ok(())
    }

    async fn group(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        self.table.begin("One root of trust");
        let management = self.management.clone();
        self.shell
            .typed(&format!(
                "kubectl --context {management} apply -f docs/examples/virtual-mesh.yaml"
            ))
            .await?;
        stage.undo_by(format!(
            "kubectl --context {management} delete -f docs/examples/virtual-mesh.yaml"
        ));
        let virtual_mesh = "virtualmesh -n gloo-mesh shop";
        for condition in ["Accepted", "Programmed", "TrustReady"] {
            self.until_condition(virtual_mesh, condition).await?;
        }
        self.shell
            .typed(&format!(
                "kubectl --context {management} get {virtual_mesh}"
            ))
            .await?;
        let mut signers = Vec::new();
        for context in self.meshes.clone() {
            let signer = self.signer(&context).await?;
            println!(
                "\n  {context}: istiod signs as {}, under root {}, until {}",
                signer.certificate().subject(),
                signer.root_id(),
                signer.not_after()
            );
            signers.push(signer);
        }
        let [first, second] = signers.as_slice() else {
            unreachable!("there are two clusters")
        };
        ensure!(
            first.root_id() == second.root_id(),
            "the clusters have different roots"
        );
        ensure!(
            first.key_fingerprint() != second.key_fingerprint(),
            "the clusters have the same key"
        );
        self.table.holds(
            "the chains of both clusters verify against one root; each has a key of its own",
        );
        Ok(())
    }

    /// What istiod of a cluster signs with, verified as istiod and its peers verify it.
    async fn signer(&self, context: &str) -> anyhow::Result<VerifiedSigner> {
        let secret = self
            .shell
            .get(context, "secret -n istio-system cacerts")
            .await?;
        let secret: Secret = serde_json::from_value(secret.context("there is no Secret cacerts")?)?;
        let data: BTreeMap<_, _> = secret.data.unwrap_or_default();
        let file = |name: &str| {
            let file = data.get(name).map(|bytes| bytes.0.as_slice());
            file.with_context(|| format!("cacerts has no {name}"))
        };
        let files = IstiodFiles {
            ca_cert: file("ca-cert.pem")?,
            ca_key: file("ca-key.pem")?,
            cert_chain: file("cert-chain.pem")?,
            root_cert: file("root-cert.pem")?,
        };
        Ok(verify_for_istiod(&files, Timestamp::now())?)
    }

    async fn federate(&mut self) -> anyhow::Result<()> {
        self.table.begin("Federation");
        for (context, host) in self.meshes.clone().iter().zip([
            "reviews.bookinfo.svc.cluster-2.global",
            "productpage.bookinfo.svc.cluster-1.global",
        ]) {
            let entry = format!("serviceentry -n istio-system {host}");
            self.shell.until(context, &entry, |_| Some(())).await?;
            let line = format!(
                "kubectl --context {context} get {entry} -o jsonpath={{.spec.hosts}}{{.spec.endpoints}}"
            );
            self.shell.typed(&line).await?;
        }
        self.table
            .holds("each mesh knows the services of the other, by way of its gateway");
        Ok(())
    }

    async fn admit(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        self.table.begin("Policies are admitted");
        let management = self.management.clone();
        stage.undo_by(format!(
            "kubectl --context {management} delete -f docs/examples/policies"
        ));
        let began = Instant::now();
        let across = "docs/examples/policies/reviews-across.yaml";
        let answer = self
            .shell
            .typed(&format!("kubectl --context {management} apply -f {across}"))
            .await?;
        ensure!(answer.err.contains("Warning: "), "the effect was not told");
        let cluster = self.meshes[0].clone();
        let reviews = "virtualservice -n bookinfo reviews";
        self.shell.until(&cluster, reviews, |_| Some(())).await?;
        let took = began.elapsed();
        let line = format!("kubectl --context {cluster} get {reviews} -o jsonpath={{.spec.http}}");
        self.shell.typed(&line).await?;
        let line = format!("kubectl --context {management} apply -f docs/examples/policies");
        self.shell.typed(&line).await?;
        for policy in [
            "trafficpolicy reviews-across",
            "trafficpolicy ratings-retries",
            "accesspolicy reviews-callers",
        ] {
            self.until_condition(&format!("{policy} -n gloo-mesh"), "Programmed")
                .await?;
        }
        let line =
            format!("kubectl --context {management} get trafficpolicy,accesspolicy -n gloo-mesh");
        self.shell.typed(&line).await?;
        self.table.holds(format!(
            "told what they will do; {} ms from kubectl to the VirtualService in cluster-1",
            took.as_millis()
        ));
        Ok(())
    }

    async fn refuse(&mut self) -> anyhow::Result<()> {
        self.table.begin("Policies are refused");
        let management = self.management.clone();
        for (file, reason) in [
            (
                "missing-service",
                "Destination review.bookinfo.cluster-1 not found",
            ),
            ("conflict", "already owned by TrafficPolicy ratings-retries"),
            ("second-virtual-mesh", "already is grouped in a VirtualMesh"),
        ] {
            let line = format!(
                "kubectl --context {management} apply -f docs/examples/refused/{file}.yaml"
            );
            let answer = self.shell.refused(&line).await?;
            ensure!(
                answer.err.contains(reason),
                "{file} was refused for another reason"
            );
        }
        self.table
            .holds("a missing service, a conflict, a mesh that is taken: each with the reason");
        Ok(())
    }

    async fn validate(&mut self) -> anyhow::Result<()> {
        self.table.begin("The same verdict without a cluster");
        let directory = std::env::temp_dir().join(format!("ferromesh-demo-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let kinds = "meshes,workloads,destinations,kubernetesclusters,virtualmeshes,trafficpolicies,accesspolicies";
        let line = format!(
            "kubectl --context {} get {kinds} -n gloo-mesh -o yaml",
            self.management
        );
        let stored = self.shell.quiet(&line, None).await?;
        std::fs::write(directory.join("stored.yaml"), stored)?;
        let files = format!(
            "-f {} -f docs/examples/refused/missing-service.yaml",
            directory.display()
        );
        let answer = self
            .shell
            .refused(&format!("meshctl validate {files}"))
            .await;
        std::fs::remove_dir_all(&directory)?;
        let answer = answer?;
        let told = format!("{}{}", answer.out, answer.err);
        ensure!(
            told.contains("Destination review.bookinfo.cluster-1 not found"),
            "the verdict is another one"
        );
        self.table
            .holds("meshctl says of a directory what the webhook says of the cluster");
        Ok(())
    }

    async fn break_a_policy(&mut self) -> anyhow::Result<()> {
        self.table.begin("A policy breaks");
        let (management, cluster) = (self.management.clone(), self.meshes[1].clone());
        let policy = "trafficpolicy -n gloo-mesh reviews-across";
        let service = self
            .shell
            .get(&cluster, "service -n bookinfo reviews")
            .await?;
        let mut service = service.context("there is no Service reviews")?;
        for field in ["resourceVersion", "uid", "creationTimestamp"] {
            service["metadata"]
                .as_object_mut()
                .map(|meta| meta.remove(field));
        }
        for field in ["clusterIP", "clusterIPs"] {
            service["spec"]
                .as_object_mut()
                .map(|spec| spec.remove(field));
        }
        self.shell
            .typed(&format!(
                "kubectl --context {cluster} delete service -n bookinfo reviews"
            ))
            .await?;
        let state = |wanted: &'static str| {
            move |object: &Value| (object["status"]["state"] == *wanted).then_some(())
        };
        self.shell
            .until(&management, policy, state("INVALID"))
            .await?;
        self.shell
            .typed(&format!(
                "kubectl --context {management} get {policy} -o jsonpath={{.status.destinations}}"
            ))
            .await?;
        println!(
            "\n  $ kubectl --context {cluster} apply -f docs/examples/bookinfo/cluster-2.yaml"
        );
        let line = format!("kubectl --context {cluster} apply -f -");
        self.shell.quiet(&line, Some(&service.to_string())).await?;
        self.shell
            .until(&management, policy, state("ACCEPTED"))
            .await?;
        self.table
            .holds("its status says which service is missing, and heals when it is back");
        Ok(())
    }

    async fn drift(&mut self) -> anyhow::Result<()> {
        self.table.begin("Drift is repaired");
        let cluster = self.meshes[0].clone();
        let reviews = "virtualservice -n bookinfo reviews";
        let timeout = |object: &Value| {
            object["spec"]["http"][0]["timeout"]
                .as_str()
                .map(str::to_owned)
        };
        let before = self.shell.until(&cluster, reviews, timeout).await?;
        let patch = "[{\"op\":\"replace\",\"path\":\"/spec/http/0/timeout\",\"value\":\"99s\"}]";
        let began = Instant::now();
        self.shell
            .typed(&format!(
                "kubectl --context {cluster} patch {reviews} --type=json -p {patch}"
            ))
            .await?;
        let is_repaired = |object: &Value| timeout(object).filter(|now| *now == before);
        self.shell.until(&cluster, reviews, is_repaired).await?;
        let took = began.elapsed();
        self.table.holds(format!(
            "a VirtualService that somebody edits is as it was after {} ms",
            took.as_millis()
        ));
        Ok(())
    }

    async fn until_condition(&self, what: &str, condition: &str) -> anyhow::Result<()> {
        let is_true = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array()?;
            let is_it = |it: &&Value| it["type"] == *condition && it["status"] == "True";
            conditions.iter().find(is_it).map(|_| ())
        };
        self.shell.until(&self.management, what, is_true).await
    }
}
