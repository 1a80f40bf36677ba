/** Renders the alert rules: as a file for Prometheus, and as a PrometheusRule for its operator. Pure. */
import type { Alert } from './alert.ts';
import { ALERT_GROUPS } from './alerts.ts';

export function alertRules() {
  return { groups: ALERT_GROUPS.map(({ name, alerts }) => ({ name, rules: alerts.map(rule) })) };
}

export function prometheusRule() {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'svc', labels: { 'app.kubernetes.io/name': 'svc' } },
    spec: alertRules(),
  };
}

function rule({ name, severity, expr, summary, meaning, action, for: duration }: Alert) {
  return { alert: name, expr, for: duration, labels: { severity }, annotations: { summary, description: `${meaning} ${action}` } };
}
