package controllers

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	tokens "k8s.io/kubernetes/pkg/serviceaccount"
)

func serviceAccounts(ctx context.Context, env *environment) (loop, error) {
	controller, err := serviceaccount.NewServiceAccountsController(
		klog.FromContext(ctx),
		env.informers.Core().V1().ServiceAccounts(),
		env.informers.Core().V1().Namespaces(),
		env.client,
		serviceaccount.DefaultServiceAccountsControllerOptions(),
	)
	return func(ctx context.Context) { controller.Run(ctx, 1) }, err
}

// serviceAccountTokens fills token Secrets. TokenRequest needs no controller.
func serviceAccountTokens(ctx context.Context, env *environment) (loop, error) {
	generator, err := tokens.JWTTokenGenerator(tokens.LegacyIssuer, env.serviceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("making a token generator of the service account key: %w", err)
	}
	controller, err := serviceaccount.NewTokensController(
		klog.FromContext(ctx),
		env.informers.Core().V1().ServiceAccounts(),
		env.informers.Core().V1().Secrets(),
		env.client,
		serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: env.rootCA},
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, err
}

func rootCAPublisher(_ context.Context, env *environment) (loop, error) {
	controller, err := rootcacertpublisher.NewPublisher(
		env.informers.Core().V1().ConfigMaps(),
		env.informers.Core().V1().Namespaces(),
		env.client,
		env.rootCA,
	)
	return func(ctx context.Context) { controller.Run(ctx, 1) }, err
}

func clusterRoleAggregation(_ context.Context, env *environment) (loop, error) {
	controller := clusterroleaggregation.NewClusterRoleAggregation(
		env.informers.Rbac().V1().ClusterRoles(),
		env.client.RbacV1(),
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, nil
}
