/** The alert rules that are shipped: the source of the rule files, the PrometheusRule and the reference page. */
import { BY_INSTALLATION, BY_SLOT, SLOT, type Alert } from './alert.ts';
import { OF_A_CLUSTER } from './alerts-cluster.ts';

/** Every replica counts what it sees of a slot, so that the sum over replicas would count it several times. */
function perSlot(increase: string): string {
  return `max by (${BY_SLOT}) (sum by (${BY_SLOT}, instance) (${increase}))`;
}

const OF_SLOTS: readonly Alert[] = [
  {
    name: 'SvcSlotStalled',
    severity: 'critical',
    expr: `max by (${BY_SLOT}) (svc_slot_condition{type="Stalled",status="True"}) == 1`,
    for: '1m',
    summary: `Slot "${SLOT}" is stalled`,
    meaning:
      'The controller cannot make progress with the slot on its own: for instance its server crashed five times, its model does not exist, or its text is invalid.',
    action:
      'Run `svcctl explain SLOT`, which says what to do. After an edit, or after `svcctl slot restart SLOT`, the controller tries again.',
  },
  {
    name: 'SvcSlotSpecInvalid',
    severity: 'warning',
    expr: `max by (${BY_SLOT}) (svc_slot_condition{type="SpecValid",status="False"}) == 1`,
    for: '5m',
    summary: `The text of slot "${SLOT}" is invalid`,
    meaning: 'Somebody wrote a text that was rejected. The last valid version stays in force, so the slot does not do what the text says.',
    action: 'Correct the key that `svcctl explain SLOT` names. `svcctl validate -f FILE` checks a text before it is written.',
  },
  {
    name: 'SvcSlotStartsTooLong',
    severity: 'warning',
    expr: `max by (${BY_SLOT}) (svc_slot_state{state=~"starting|warming"}) == 1`,
    for: '20m',
    summary: `Slot "${SLOT}" has been starting for 20 minutes`,
    meaning:
      'The server of the slot was started and does not pass its probe, or attempts fail again and again without ending as stalled. Requests for it wait or fail.',
    action: 'Run `svcctl explain SLOT` and `svcctl logs SLOT`. Raise `start_timeout` if the model needs so long.',
  },
  {
    name: 'SvcSlotNotReady',
    severity: 'warning',
    expr:
      `max by (${BY_SLOT}) (svc_slot_condition{type="Ready",status="False"}) == 1 ` +
      `and max by (${BY_SLOT}) (svc_slot_condition{type="Reconciling",status="True"}) == 1`,
    for: '30m',
    summary: `Slot "${SLOT}" should answer and has not for 30 minutes`,
    meaning:
      'The slot is wanted, and something has kept it from answering for 30 minutes: no node takes its pod, its image or model cannot be fetched, or its server starts and ends again and again. A slot at rest does not count.',
    action:
      'Run `svcctl explain SLOT`, in a cluster also `kubectl describe slot SLOT`: the reason of the condition `Ready` says what it waits for. Nothing is wrong if a large model is still being downloaded.',
  },
  {
    name: 'SvcSlotReplicasMissing',
    severity: 'warning',
    expr:
      `max by (${BY_SLOT}) (svc_slot_replicas_ready) < max by (${BY_SLOT}) (svc_slot_replicas_desired) ` +
      `and max by (${BY_SLOT}) (svc_slot_condition{type="Ready",status="True"}) == 1`,
    for: '15m',
    summary: `Slot "${SLOT}" has had fewer replicas than it should for 15 minutes`,
    meaning: 'The slot answers, but not all of its pods do, so it can answer fewer requests at a time and tolerates fewer failures.',
    action:
      'Run `kubectl get pods -l inference.svc.dev/slot=SLOT` and `svcctl explain SLOT`, which say what is missing: often a GPU, memory, or a node. Otherwise lower `replicas`.',
  },
  {
    name: 'SvcSlotDrifts',
    severity: 'warning',
    expr: `max by (${BY_SLOT}) (svc_slot_condition{type="DriftDetected",status="True"}) == 1`,
    for: '15m',
    summary: `The workload of slot "${SLOT}" has differed from its spec for 15 minutes`,
    meaning: 'Somebody changed the running workload from outside, and it has not been put right: it cannot be, or not yet.',
    action:
      'Run `svcctl explain SLOT`, which names what was changed and what hinders the repair. Set `drift = "ignore"` in the slot only if the change is wanted.',
  },
  {
    name: 'SvcSlotFlapping',
    severity: 'warning',
    expr: `${perSlot('increase(svc_slot_transitions_total{from=~"ready|serving|idle",to=~"starting|warming"}[30m])')} > 3`,
    for: '0m',
    summary: `Slot "${SLOT}" stops answering again and again`,
    meaning:
      'A slot that answered had to be started again more than three times within half an hour. Its server crashes, fails its probes, or is changed from outside.',
    action: 'Look for the causes in `svcctl timeline SLOT`, and for the last output before a crash in `svcctl logs SLOT`.',
  },
  {
    name: 'SvcDriftRepeats',
    severity: 'warning',
    expr: `${perSlot('increase(svc_drift_total[1h])')} > 3`,
    for: '0m',
    summary: `Something keeps changing the workload of slot "${SLOT}"`,
    meaning:
      'The running workload was changed from outside more than three times within an hour, and each time the controller put it right. Two programs manage the same object.',
    action:
      'Find the other program: `svcctl timeline SLOT` says what was changed. Set `drift = "ignore"` in the slot only if the change is wanted.',
  },
];

const OF_REQUESTS: readonly Alert[] = [
  {
    name: 'SvcRequestsFail',
    severity: 'critical',
    expr:
      `sum by (${BY_SLOT}) (rate(svc_requests_total{slot!="",code=~"5.."}[5m])) ` +
      `/ sum by (${BY_SLOT}) (rate(svc_requests_total{slot!=""}[5m])) > 0.05`,
    for: '10m',
    summary: `More than 5 % of the requests for slot "${SLOT}" fail`,
    meaning:
      'Clients get answers with a status of 500 and above: from the gateway, because the slot does not answer, or from the model server.',
    action:
      'Run `svcctl explain SLOT`. The body of an error says in `code` what happened and in `origin` who says so; the reference of errors lists the codes.',
  },
  {
    name: 'SvcQueueFull',
    severity: 'warning',
    expr: `sum by (${BY_SLOT}) (increase(svc_requests_total{code="429"}[5m])) > 0`,
    for: '5m',
    summary: `Requests for slot "${SLOT}" are refused because its queue is full`,
    meaning: 'As many requests as `SVC_PARK_LIMIT` allows were waiting for the slot, so further ones were answered 429.',
    action:
      'If the slot is loading, wait for it. If it loads too often, use `load = "always"` or a longer `idle_timeout`; otherwise raise `SVC_PARK_LIMIT`.',
  },
  {
    name: 'SvcQueueSlow',
    severity: 'warning',
    expr: `histogram_quantile(0.95, sum by (le, ${BY_SLOT}) (rate(svc_parked_seconds_bucket[10m]))) > 60`,
    for: '10m',
    summary: `Requests wait longer than a minute for slot "${SLOT}"`,
    meaning:
      'One of twenty requests that had to wait for their slot waited longer than a minute: loading takes long, or the slot is loaded too often.',
    action: 'Look at the states of the slot in `svcctl timeline SLOT`. Keep the slot loaded (`load = "always"`), or use a smaller model.',
  },
  {
    name: 'SvcFirstTokenSlow',
    severity: 'warning',
    expr: `histogram_quantile(0.95, sum by (le, ${BY_SLOT}) (rate(gen_ai_server_time_to_first_token_seconds_bucket[10m]))) > 30`,
    for: '15m',
    summary: `Streams of slot "${SLOT}" begin after more than 30 seconds`,
    meaning:
      'One of twenty streamed answers began more than 30 seconds after its request: requests wait in the queue, or the server reads long prompts slowly.',
    action:
      'Compare with the time in the queue (`svc_parked_seconds`) and the requests in flight (`svc_inflight`). Allow the server more parallel requests, or a faster backend.',
  },
];

const OF_THE_SERVICE: readonly Alert[] = [
  {
    name: 'SvcAbsent',
    severity: 'critical',
    expr: 'absent(svc_build_info)',
    for: '5m',
    summary: 'No instance of svc is scraped',
    meaning: 'Prometheus knows no instance of the service: it does not run, or the scrape configuration does not find it.',
    action: 'Look at the targets of Prometheus, and at the log of the service (`journalctl -u svc`, or `kubectl logs`).',
  },
  {
    name: 'SvcReconcileStopped',
    severity: 'critical',
    expr: 'time() - svc_reconcile_last_pass_timestamp_seconds > 120',
    for: '3m',
    summary: 'The reconcile loop of {{ $labels.instance }} has not finished a pass for two minutes',
    meaning:
      'Slots that answer go on answering, but nothing is started, repaired or changed. With a `SVC_RESYNC` above a minute, raise the limit of this rule.',
    action: 'Read the log of the service, then restart it. Slots keep running meanwhile.',
  },
  {
    name: 'SvcPlanRefused',
    severity: 'critical',
    expr: `sum by (${BY_INSTALLATION}) (increase(svc_reconcile_passes_total{result="refused"}[10m])) > 0`,
    for: '0m',
    summary: 'A plan of the controller broke the rules for plans and was not carried out',
    meaning:
      'The check that every plan must pass found a mistake of the program. The plan was not carried out, and slots stay as they are.',
    action: 'Report a bug with the objections that the log of the service lists.',
  },
  {
    name: 'SvcWorldUnreachable',
    severity: 'critical',
    expr:
      `sum by (${BY_INSTALLATION}, instance) (increase(svc_reconcile_passes_total{result=~"unreachable|unreadable"}[5m])) > 0 ` +
      `unless sum by (${BY_INSTALLATION}, instance) (increase(svc_reconcile_passes_total{result="ok"}[5m])) > 0`,
    for: '2m',
    summary: 'The controller {{ $labels.instance }} cannot reach the runtime, or cannot read the slots',
    meaning:
      'For five minutes no pass saw the workloads and the slots: podman, the API server or the directory of slots does not answer. Slots that answer go on answering.',
    action: 'Read the log of the service, which names the cause; check podman (`systemctl status podman.socket`) or the API server.',
  },
  {
    name: 'SvcActionsFail',
    severity: 'warning',
    expr: `sum by (${BY_INSTALLATION}, action) (increase(svc_actions_total{result="failed"}[30m])) > 10`,
    for: '0m',
    summary: 'The action "{{ $labels.action }}" failed more than ten times within half an hour',
    meaning: 'Attempts to pull, start, stop or probe fail again and again. The controller keeps trying, with a growing delay.',
    action: 'Run `svcctl get slots`, and `svcctl explain` for each slot that is not ready.',
  },
  {
    name: 'SvcPassesSlow',
    severity: 'warning',
    expr: `histogram_quantile(0.99, sum by (le, ${BY_INSTALLATION}, instance) (rate(svc_reconcile_pass_seconds_bucket[10m]))) > 1`,
    for: '15m',
    summary: 'Passes of {{ $labels.instance }} take longer than a second',
    meaning:
      'A pass only observes and plans, which takes milliseconds. One of a hundred passes takes longer than a second, so edits and failures of servers are noticed late, and requests through this instance wait as well.',
    action:
      'Compare `process_cpu_seconds_total` with the CPU limit of the gateway, and raise it if it is reached. Otherwise the runtime answers slowly: look at podman, or at the latency of the API server (`svc_kube_request_seconds`).',
  },
  {
    name: 'SvcEventLoopBlocked',
    severity: 'warning',
    expr: 'nodejs_eventloop_delay_max_seconds > 0.25 and on (job, instance) svc_build_info',
    for: '10m',
    summary: 'Requests through {{ $labels.instance }} wait for more than 250 ms again and again',
    meaning:
      'The process of the gateway is busy for so long at a time that every request waits: the machine is overloaded, or the bodies of requests are very large.',
    action: 'Compare `process_cpu_seconds_total` with the load of the machine. Give the gateway more CPU, or use more replicas.',
  },
  {
    name: 'SvcSourceNotSynced',
    severity: 'warning',
    expr: `count by (${BY_INSTALLATION}) (svc_source_synced == 0)`,
    for: '1h',
    summary: 'The configuration of {{ $value }} hosts has differed from its repository for an hour',
    meaning:
      'The newest commit has a mistake, is not signed by somebody who may, waits for a change window, or cannot be fetched; or somebody edited a file on the host. What was applied last serves.',
    action: 'Run `svcctl source status` there, which names the commit and what to do. `svcctl source diff` shows local edits.',
  },
  {
    name: 'SvcLimitsNotShared',
    severity: 'warning',
    expr: `count by (${BY_INSTALLATION}) (svc_limits_shared == 0)`,
    for: '5m',
    summary: '{{ $value }} gateways do not count callers together with the others',
    meaning:
      'The server of `SVC_LIMITS_URL` does not answer these gateways. Requests go on, and each gateway enforces its part of the limits of callers, so that a caller who meets only some of them gets less than its limit.',
    action:
      'Run `svcctl doctor`, or read `limits.problem` in `GET /api/status` of the gateway: it says whether the server cannot be reached, refuses the password, or answers something unexpected.',
  },
];

export const ALERT_GROUPS: readonly { readonly name: string; readonly title: string; readonly alerts: readonly Alert[] }[] = [
  { name: 'svc-slots', title: 'Slots', alerts: OF_SLOTS },
  { name: 'svc-requests', title: 'Requests', alerts: OF_REQUESTS },
  { name: 'svc-cluster', title: 'A cluster', alerts: OF_A_CLUSTER },
  { name: 'svc-service', title: 'The service', alerts: OF_THE_SERVICE },
];
