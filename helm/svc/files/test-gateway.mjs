// What the pod of "helm test" runs in the image of the gateway: asks the gateway of GATEWAY_URL whether it is ready and which models it lists. Tries for a
// minute, because a gateway may just be starting, then exits with 1 and says what was wrong.
const gateway = process.env.GATEWAY_URL;
const patienceMs = Number(process.env.PATIENCE_MS ?? 60_000);

const checks = {
  '/api/health/ready': ({ status, body }) => status === 200 && body.status === 'ok' && 'The gateway is ready',
  '/v1/models': ({ status, body }) => {
    if (status === 200 && Array.isArray(body.data)) return `The gateway lists ${body.data.length} models`;
    return status === 401 && String(body.error?.code).startsWith('auth.') && 'The gateway lists its models only to clients with a token';
  },
};

async function ask(path) {
  const answer = await fetch(`${gateway}${path}`, { signal: AbortSignal.timeout(5000) });
  const text = await answer.text();
  return { status: answer.status, text, body: JSON.parse(text) };
}

async function problemOf(path, isGood) {
  try {
    const answer = await ask(path);
    const good = isGood(answer);
    if (good) console.log(good);
    return good ? undefined : `status ${answer.status}, ${answer.text.slice(0, 500)}`;
  } catch (error) {
    return [error.message, error.cause?.message].filter(Boolean).join(': ');
  }
}

const giveUpAt = performance.now() + patienceMs;
for (const [path, isGood] of Object.entries(checks)) {
  let problem = await problemOf(path, isGood);
  while (problem !== undefined && performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    problem = await problemOf(path, isGood);
  }
  if (problem !== undefined) {
    console.error(`Look at the pods of the gateway: ${gateway}${path} did not give the expected answer, but ${problem}`);
    process.exit(1);
  }
}
