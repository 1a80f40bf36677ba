/** All files that are generated from the schemas. `npm run generate` writes them, and `npm run check` fails if one is stale. Pure. */
import { grafanaDashboard } from './monitoring/dashboard.ts';
import { alertRules, prometheusRule } from './monitoring/publish-alerts.ts';
import { alertReference, metricReference } from './monitoring/publish-monitoring-reference.ts';
import { chartReadme } from './publish-chart-readme.ts';
import { slotCrd } from './publish-crd.ts';
import { slotEditorSchema } from './publish-editor-schema.ts';
import { helmValuesSchema } from './publish-helm-schema.ts';
import { conditionReference, errorReference, settingsReference, slotReference } from './publish-reference.ts';
import { svcctlReference } from './publish-svcctl.ts';

export interface PublishedFile {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly content:
    | { readonly format: 'text'; readonly text: string }
    /** Serialised by `scripts/generate.ts`. */
    | { readonly format: 'yaml' | 'json'; readonly value: unknown };
}

const CRD_FILE = 'slotspecs.inference.svc.dev.yaml';

/** A new generated file is one more line here. `chartValues` is the text of helm/svc/values.yaml, whose comments become the README of the chart. */
export function publishedFiles(chartValues: string): readonly PublishedFile[] {
  return [
    { path: `crds/${CRD_FILE}`, content: { format: 'yaml', value: slotCrd() } },
    // Helm installs the files in this folder before anything else.
    { path: `helm/svc/crds/${CRD_FILE}`, content: { format: 'yaml', value: slotCrd() } },
    { path: 'helm/svc/values.schema.json', content: { format: 'json', value: helmValuesSchema() } },
    { path: 'helm/svc/README.md', content: { format: 'text', text: chartReadme(chartValues, helmValuesSchema()) } },
    { path: 'docs/reference/slot.schema.json', content: { format: 'json', value: slotEditorSchema() } },
    { path: 'docs/reference/slot.md', content: { format: 'text', text: slotReference() } },
    { path: 'docs/reference/settings.md', content: { format: 'text', text: settingsReference() } },
    { path: 'docs/reference/conditions.md', content: { format: 'text', text: conditionReference() } },
    { path: 'docs/reference/svcctl.md', content: { format: 'text', text: svcctlReference() } },
    { path: 'docs/reference/metrics.md', content: { format: 'text', text: metricReference() } },
    { path: 'docs/reference/alerts.md', content: { format: 'text', text: alertReference() } },
    { path: 'manifests/monitoring/rules.yaml', content: { format: 'yaml', value: alertRules() } },
    { path: 'manifests/monitoring/prometheus-rule.yaml', content: { format: 'yaml', value: prometheusRule() } },
    { path: 'manifests/monitoring/grafana-dashboard.json', content: { format: 'json', value: grafanaDashboard() } },
    // The chart can read only files of its own.
    { path: 'helm/svc/files/alert-rules.yaml', content: { format: 'yaml', value: alertRules() } },
    { path: 'docs/reference/errors.md', content: { format: 'text', text: errorReference() } },
  ];
}
