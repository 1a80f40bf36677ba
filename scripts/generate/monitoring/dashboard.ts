/** Renders the Grafana dashboard. Pure. */
import { ROWS } from './dashboard-rows.ts';
import { JOB, type Panel } from './dashboard-panel.ts';

const DATA_SOURCE = { type: 'prometheus', uid: '${datasource}' };
const WIDTH = 24;
const HEIGHTS = { stat: 4, timeseries: 8, 'state-timeline': 8 } as const;
const WIDTHS = { stat: 6, timeseries: 12, 'state-timeline': 12 } as const;

export function grafanaDashboard() {
  return {
    uid: 'svc-overview',
    title: 'svc',
    description: 'Slots, requests, tokens and the controller',
    tags: ['svc'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: '',
    templating: {
      list: [
        dataSourceVariable(),
        queryVariable('namespace', 'label_values(svc_build_info, namespace)'),
        queryVariable('job', 'label_values(svc_build_info{namespace=~"$namespace"}, job)'),
        queryVariable('slot', `label_values(svc_slot_state{${JOB}}, slot)`),
      ],
    },
    annotations: { list: [] },
    panels: panels(),
  };
}

/** Places panels from left to right below the title of their row. */
function panels(): readonly object[] {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels: inRow } of ROWS) {
    placed.push({ id: placed.length + 1, type: 'row', title, collapsed: false, panels: [], gridPos: { x: 0, y, w: WIDTH, h: 1 } });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of inRow) {
      const [w, h] = [WIDTHS[panel.kind], HEIGHTS[panel.kind]];
      if (x + w > WIDTH) {
        x = 0;
        y += height;
        height = 0;
      }
      placed.push(render(panel, placed.length + 1, { x, y, w, h }));
      x += w;
      height = Math.max(height, h);
    }
    y += height;
  }
  return placed;
}

function render({ title, description, kind, unit = 'short', queries }: Panel, id: number, gridPos: object): object {
  const targets = queries.map(([expr, legendFormat], index) => ({
    refId: String.fromCodePoint(65 + index),
    datasource: DATA_SOURCE,
    expr,
    legendFormat,
    instant: kind === 'stat',
    range: kind !== 'stat',
  }));
  return {
    id,
    type: kind,
    title,
    description,
    datasource: DATA_SOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: {},
    targets,
  };
}

function dataSourceVariable(): object {
  return {
    name: 'datasource',
    label: 'Data source',
    type: 'datasource',
    query: 'prometheus',
    current: { text: 'default', value: 'default' },
    hide: 0,
  };
}

function queryVariable(name: string, query: string): object {
  const all = { includeAll: true, multi: true, current: { text: 'All', value: '$__all' }, allValue: '.*' };
  return {
    name,
    label: name,
    type: 'query',
    datasource: DATA_SOURCE,
    query: { query, refId: name },
    refresh: 2,
    sort: 1,
    ...all,
  };
}
