/** Usage over time as bars. */
import type { JSX } from 'preact';
import { barMarks, measureText, usageBars, type Bar, type BarMark, type Measure } from '../decide/usage-bars.ts';
import { A, USAGE_MEASURES } from '../texts-activity.ts';
import type { TimelineEntry, UsageReport } from '../types.ts';

const WIDTH = 720;
const HEIGHT = 120;
const GAP = 2;
const MARK = 6;
/** Above the bars: failures, and below them changes. */
const STRIP = 2 * (MARK + GAP);
const MOST_NAMED = 8;

interface UsageChartProps {
  /** Grouped by `step`. */
  readonly report: UsageReport;
  readonly step: 'hour' | 'day';
  readonly measure: Measure;
  /** Events of slots, the newest first. */
  readonly entries: readonly TimelineEntry[];
}

export function UsageChart({ report, step, measure, entries }: UsageChartProps): JSX.Element {
  const bars = usageBars(report, step, measure);
  const most = Math.max(...bars.map(({ value }) => value));
  const name = USAGE_MEASURES.find(([id]) => id === measure)?.[1] ?? '';
  const format = (value: number): string => measureText(measure, value);
  const width = WIDTH / bars.length;
  const marks = barMarks(entries, bars, step);
  const countOf = (kind: BarMark['kind']): number => marks.reduce((sum, mark) => sum + (mark.kind === kind ? mark.events.length : 0), 0);
  const heightOf = ({ value }: Bar): number => (most === 0 ? 0 : Math.max(value > 0 ? 1 : 0, (value / most) * (HEIGHT - STRIP)));
  return (
    <figure class="usage-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={A.chartOf(name, format(most))} preserveAspectRatio="none">
        {bars.map((bar, index) => (
          <g key={bar.at}>
            <rect class="area" x={index * width} y={0} width={width} height={HEIGHT} />
            <rect x={index * width + GAP / 2} y={HEIGHT - heightOf(bar)} width={Math.max(1, width - GAP)} height={heightOf(bar)} />
            <title>{`${timeOf(bar.at, step)}: ${format(bar.value)}`}</title>
          </g>
        ))}
        {marks.map((mark) => (
          <rect
            key={`${mark.kind}${mark.index}`}
            class={mark.kind}
            x={mark.index * width + GAP / 2}
            y={mark.kind === 'failure' ? 0 : MARK + GAP}
            width={Math.max(1, width - GAP)}
            height={MARK}
          >
            <title>{textOf(mark)}</title>
          </rect>
        ))}
      </svg>
      <figcaption>
        <span>{timeOf(bars[0]?.at ?? 0, step)}</span>
        <span>{A.chartOf(name, format(most))}</span>
        <span>{timeOf(bars.at(-1)?.at ?? 0, step)}</span>
      </figcaption>
      {marks.length > 0 && (
        <div class="row">
          {MARK_KINDS.map((kind) => countOf(kind) > 0 && <small key={kind} class={kind}>{`${A.marks[kind]}: ${countOf(kind)}`}</small>)}
        </div>
      )}
    </figure>
  );
}

const MARK_KINDS = ['failure', 'change'] as const;

function textOf({ events }: BarMark): string {
  const lines = events.slice(0, MOST_NAMED).map(({ slot, message }) => `${slot}: ${message}`);
  return [...lines, ...(events.length > MOST_NAMED ? ['…'] : [])].join('\n');
}

/** Hours in the time zone of the browser; days as the service counts them, in UTC. */
function timeOf(at: number, step: 'hour' | 'day'): string {
  const time = new Date(at);
  return step === 'day' ? time.toISOString().slice(0, 10) : time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}
