/** Plans of an agent in the dashboard of a real service: a person reads what would change, and approves or rejects it. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connectAgent, type Agent } from '../support/mcp-client.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { startService, type Service } from '../support/service.ts';
import { accessibilityFaults, picture, setUpBrowser } from './visit.ts';

describeWithBrowser('plans of agents in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;
  let agent: Agent;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: { SVC_MCP: 'on', SVC_MCP_APPROVE: 'human' } });
    await service.save('primary', 'enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    agent = await connectAgent(service.url);
  }, 120_000);
  afterAll(async () => {
    await agent.close();
    await service.dispose();
  });

  test('are approved or rejected by a person', async () => {
    const plan = async (priority: number) => await agent.call('plan_change', { edits: [{ name: 'primary', set: { priority } }] });
    const apply = async (token: unknown) => await agent.call('apply_plan', { token });
    const page = await visit(`${service.url}/#/activity/changes`);
    await page.getByText('No changes through this API yet').waitFor();
    const first = await plan(3);
    const plans = page.getByRole('region', { name: 'Plans of agents' });
    const row = plans.getByRole('row', { name: 'primary priority' });
    await row.waitFor();
    expect(await row.getByRole('cell').allTextContents()).toEqual(['primary', 'priority', '(not set)', '3']);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'agent-plans');
    expect(await apply(first['token'])).toMatchObject({ error: { code: 'plan.refused' } });
    await plans.getByRole('button', { name: 'Approve' }).click();
    await plans.getByText('The agent may apply it').waitFor();
    expect(await apply(first['token'])).toMatchObject({ slots: [{ name: 'primary', result: 'updated' }] });
    await page.getByText('through MCP edited the slot "primary"').waitFor();
    const second = await plan(4);
    await plans.getByRole('button', { name: 'Reject' }).click();
    await plans.waitFor({ state: 'detached' });
    expect(await apply(second['token'])).toMatchObject({ error: { message: expect.stringContaining('rejected') } });
  }, 60_000);
});
