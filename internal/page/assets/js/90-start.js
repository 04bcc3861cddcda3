const inside = byId('data');
page.live = inside === null;
prepareTable();
prepareDetail();
if (page.live) {
  prepareLive();
} else {
  page.leftOut = byId('count').textContent.replace(/^[^;]*/, '');
  render(JSON.parse(inside.textContent));
}
