/** The published schemas of current Kubernetes and of the third-party kinds in the chart and the examples: for checks that an older API server cannot make. */
import { Application } from '@kubernetes-models/argo-cd/argoproj.io/v1alpha1/Application';
import { HelmRelease } from '@kubernetes-models/flux-cd/helm.toolkit.fluxcd.io/v2/HelmRelease';
import { Kustomization } from '@kubernetes-models/flux-cd/kustomize.toolkit.fluxcd.io/v1/Kustomization';
import { GitRepository } from '@kubernetes-models/flux-cd/source.toolkit.fluxcd.io/v1/GitRepository';
import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject';
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { ValidatingAdmissionPolicy } from 'kubernetes-models/admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy';
import { ValidatingAdmissionPolicyBinding } from 'kubernetes-models/admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ClusterRole } from 'kubernetes-models/rbac.authorization.k8s.io/v1/ClusterRole';
import { ClusterRoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1/ClusterRoleBinding';
import { Role } from 'kubernetes-models/rbac.authorization.k8s.io/v1/Role';
import { RoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1/RoleBinding';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim';
import { Pod } from 'kubernetes-models/v1/Pod';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import { inferencePoolProblem } from './inference-pool.ts';

type Check = (text: string) => void;

/** Throws if the JSON text does not match the schema. */
function by<T>(Model: new (data: T) => { validate(): unknown }): Check {
  return (text) => {
    const data: T = JSON.parse(text);
    new Model(data).validate();
  };
}

const CHECKS: Readonly<Record<string, Check>> = {
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy': by(ValidatingAdmissionPolicy),
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding': by(ValidatingAdmissionPolicyBinding),
  'apps/v1/Deployment': by(Deployment),
  'argoproj.io/v1alpha1/Application': by(Application),
  'autoscaling/v2/HorizontalPodAutoscaler': by(HorizontalPodAutoscaler),
  'gateway.networking.k8s.io/v1/HTTPRoute': by(HTTPRoute),
  'inference.networking.k8s.io/v1/InferencePool': (text) => {
    const problem = inferencePoolProblem(JSON.parse(text));
    if (problem !== undefined) throw new Error(problem);
  },
  'helm.toolkit.fluxcd.io/v2/HelmRelease': by(HelmRelease),
  'kustomize.toolkit.fluxcd.io/v1/Kustomization': by(Kustomization),
  'keda.sh/v1alpha1/ScaledObject': by(ScaledObject),
  'monitoring.coreos.com/v1/PrometheusRule': by(PrometheusRule),
  'monitoring.coreos.com/v1/ServiceMonitor': by(ServiceMonitor),
  'networking.k8s.io/v1/Ingress': by(Ingress),
  'networking.k8s.io/v1/NetworkPolicy': by(NetworkPolicy),
  'policy/v1/PodDisruptionBudget': by(PodDisruptionBudget),
  'rbac.authorization.k8s.io/v1/ClusterRole': by(ClusterRole),
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': by(ClusterRoleBinding),
  'rbac.authorization.k8s.io/v1/Role': by(Role),
  'rbac.authorization.k8s.io/v1/RoleBinding': by(RoleBinding),
  'source.toolkit.fluxcd.io/v1/GitRepository': by(GitRepository),
  'v1/ConfigMap': by(ConfigMap),
  'v1/Namespace': by(Namespace),
  'v1/PersistentVolumeClaim': by(PersistentVolumeClaim),
  'v1/Pod': by(Pod),
  'v1/Secret': by(Secret),
  'v1/Service': by(Service),
  'v1/ServiceAccount': by(ServiceAccount),
};

/** Returns what is wrong with an object, or undefined if it is valid. Throws for a kind without a schema. */
export function schemaProblem(object: Readonly<Record<string, unknown>>): string | undefined {
  const kind = `${String(object['apiVersion'])}/${String(object['kind'])}`;
  const check = CHECKS[kind];
  if (check === undefined) throw new Error(`Add the published schema of "${kind}"`);
  try {
    check(JSON.stringify(object));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
