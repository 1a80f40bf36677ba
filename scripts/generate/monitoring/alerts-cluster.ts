/** The alert rules that concern a cluster: its API server, and the replicas of the gateway. Each replica sends requests of its own, and one of them leads. */
import { BY_INSTALLATION, type Alert } from './alert.ts';

const BY_INSTANCE = `${BY_INSTALLATION}, instance`;
/** On a host, each instance leads. */
const IN_A_CLUSTER = `and on (${BY_INSTANCE}) svc_build_info{runtime="kube"}`;

/** The rate of requests with these codes: a regular expression. */
function requests(codes: string, by: string, window: string): string {
  return `sum by (${by}) (rate(svc_kube_requests_total{code=~"${codes}"}[${window}]))`;
}

const OF_THE_LEADER: readonly Alert[] = [
  {
    name: 'SvcNoLeader',
    severity: 'critical',
    expr: `sum by (${BY_INSTALLATION}) (svc_leads) < 1`,
    for: '2m',
    summary: 'No replica of the gateway is the leader',
    meaning: 'In a cluster, only the leader changes anything. Requests are served, but nothing is started or repaired.',
    action: 'Look at the Lease of the gateway (`kubectl describe lease`) and at the logs of its pods: they must reach the API server.',
  },
  {
    name: 'SvcSeveralLeaders',
    severity: 'critical',
    expr: `sum by (${BY_INSTALLATION}) (svc_leads ${IN_A_CLUSTER}) > 1`,
    for: '2m',
    summary: 'Several replicas of the gateway believe that they lead',
    meaning:
      'Two replicas execute plans and may undo what the other one does. That must not happen: the clock of a node runs at the wrong speed, or two installations run in one namespace.',
    action:
      'List the gateways (`kubectl get pods -l app.kubernetes.io/component=gateway`), look for a second installation, and compare the clocks of their nodes. Delete the pod that the Lease does not name (`kubectl get lease svc-controller`).',
  },
  {
    name: 'SvcLeaderChangesOften',
    severity: 'warning',
    expr: `max by (${BY_INSTALLATION}) (increase(svc_leader_transitions_total[1h])) > 4`,
    for: '0m',
    summary: 'The leader changed more than four times within an hour',
    meaning:
      'Leaders lose their Lease: they are restarted, or cannot renew it in time because the API server answers slowly or they get too little CPU. Each change delays what is being done for slots.',
    action:
      'Look at restarts of the gateway (`kubectl get pods`), at its log around `no longer leads`, and at `svc_kube_request_seconds`. Raise the CPU limit of the gateway, or `SVC_LEASE_DURATION`.',
  },
];

const OF_THE_API_SERVER: readonly Alert[] = [
  {
    name: 'SvcApiServerDown',
    severity: 'critical',
    expr:
      `${requests('5..|unreachable|untrusted|no_credentials', BY_INSTANCE, '5m')} > 0 ` +
      `unless ${requests('[1-4]..', BY_INSTANCE, '5m')} > 0`,
    for: '2m',
    summary: 'No request of {{ $labels.instance }} to the API server succeeds',
    meaning:
      'For five minutes, the API server did not answer this replica, or answered with errors of its own only. Slots that answer go on answering, but nothing is started or repaired, and pods that come and go are not noticed.',
    action:
      'Run `kubectl get --raw /readyz`. If it succeeds, only this replica is cut off: read its log, and check network policies (`networkPolicy.apiServerPorts`) and its node.',
  },
  {
    name: 'SvcApiServerErrors',
    severity: 'warning',
    expr: `${requests('5..|unreachable', BY_INSTANCE, '5m')} ` + `/ sum by (${BY_INSTANCE}) (rate(svc_kube_requests_total[5m])) > 0.05 < 1`,
    for: '15m',
    summary: 'More than 5 % of the requests of {{ $labels.instance }} to the API server fail',
    meaning: 'The API server is overloaded or partly away. What the controller does is delayed, since it tries again.',
    action:
      'Look at the health and the load of the API server and of etcd. The panel "Requests to the API server" of the dashboard shows which codes and resources are concerned.',
  },
  {
    name: 'SvcApiServerThrottles',
    severity: 'warning',
    expr: `${requests('429', BY_INSTALLATION, '5m')} > 0`,
    for: '15m',
    summary: 'The API server has been refusing requests of the service for 15 minutes, because they are too many',
    meaning: 'Requests were answered 429 (Too Many Requests), and are sent again later. What the controller does is delayed.',
    action:
      'Look at the flow control of the API server (`apiserver_flowcontrol_rejected_requests_total`): a client floods it, or the priority level of the service is too small. If the service itself sends too much, the dashboard shows which requests.',
  },
  {
    name: 'SvcApiServerUntrusted',
    severity: 'critical',
    expr: `${requests('401|untrusted|no_credentials', `${BY_INSTANCE}, code`, '5m')} > 0`,
    for: '10m',
    summary: '{{ $labels.instance }} and the API server do not accept each other ({{ $labels.code }})',
    meaning:
      'The certificate of the API server is not trusted or has expired ("untrusted"), the API server rejects the credentials of the service (401), or there are none ("no_credentials").',
    action:
      'Read the log of the replica, which names the cause. Check the certificates of the API server, and that the service account of the gateway exists and its token is mounted; restart the gateway after a change of the certificate authority.',
  },
  {
    name: 'SvcApiServerForbids',
    severity: 'warning',
    expr: `${requests('403', `${BY_INSTALLATION}, verb, resource`, '10m')} > 0`,
    for: '15m',
    summary: 'The service may not {{ $labels.verb }} {{ $labels.resource }}',
    meaning: 'The API server answers 403: the Role of the service lacks a right, or a quota or an admission rule rejects the object.',
    action:
      'Read the log of the leader, which quotes the API server. Upgrade the Role together with the service (the chart does, unless `rbac.create` is false), or raise the quota.',
  },
  {
    name: 'SvcCopyStale',
    severity: 'warning',
    expr: `max by (${BY_INSTANCE}, resource) (svc_kube_copy_age_seconds) > 120`,
    for: '5m',
    summary: 'What {{ $labels.instance }} knows of {{ $labels.resource }} is out of date',
    meaning:
      'This replica cannot list or watch these objects, so it decides on old facts: it may send requests to pods that are gone, and miss edits. A watch on which nothing happens does not count as old.',
    action:
      'Look at the codes of its requests for this resource (`svc_kube_requests_total`) and at how its watches end (`svc_kube_copy_watches_total`). Check the right to list and watch, and proxies between gateway and API server that cut long answers.',
  },
  {
    name: 'SvcStatusWritesFail',
    severity: 'warning',
    expr: `sum by (${BY_INSTALLATION}, what) (increase(svc_status_writes_total{result="failed"}[5m])) > 0`,
    for: '10m',
    summary: 'Writes of the kind "{{ $labels.what }}" have been failing for ten minutes',
    meaning:
      'The leader cannot write statuses into SlotSpecs, or Events, so `kubectl` and GitOps tools show an old status. What the controller does is not affected. Conflicts do not count.',
    action:
      'Read the log of the leader, which names slot and cause. After an upgrade, apply the CustomResourceDefinition of the new version; check the right to patch `slotspecs/status` and to create Events.',
  },
];

export const OF_A_CLUSTER: readonly Alert[] = [...OF_THE_LEADER, ...OF_THE_API_SERVER];
